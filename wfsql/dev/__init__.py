"""`wf dev`: a whole wfsql on one machine, that follows the files of a folder."""
