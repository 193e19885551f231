"""The page of `streamql report`: `model` holds the facts, `page` makes one self-contained file of HTML of them.

Nothing here calls Spark, opens a file or reads a clock.
"""
