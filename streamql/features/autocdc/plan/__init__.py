"""What AUTO CDC INTO does, as SQL texts. No Spark is needed."""
