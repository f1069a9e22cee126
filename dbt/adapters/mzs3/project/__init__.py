"""What the dbt project says, and what its runs need of it: doors between dbt and the features."""
