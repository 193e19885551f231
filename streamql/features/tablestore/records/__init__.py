"""Changes as TableStore records: the rows of commits, their entries and files, and relations of them."""
