"""The objects of the runtime that a client may rely on, and what checks them."""
