"""PostgreSQL: every statement, migration and row of the project."""
