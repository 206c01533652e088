"""One file for each revision of the schema, numbered in order; a published one is never changed."""
