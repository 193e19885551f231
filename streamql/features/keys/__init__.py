"""Keys as identity: primary keys that tables declare, and streams that recognize rows by them."""
