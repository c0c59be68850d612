"""Numbers of tables counted anew from their raw files, by code that shares nothing with what made the tables."""
