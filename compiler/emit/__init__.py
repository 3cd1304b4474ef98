"""What the SQL emitters share: the plan of a deploy script and how its text is written."""
