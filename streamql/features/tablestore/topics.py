"""The texts of \\help on records of TableStore, as data."""

from __future__ import annotations

from streamql.feature import Topic

TOPICS = (
    Topic(
        "tablestore_records",
        "every change of every commit, as 6-tuples",
        (
            "SELECT … FROM tablestore_records('stream')",
            "SELECT … FROM tablestore_records('table' [, after [, through]])",
        ),
        "A row of the result is one column of one key: DR deletes the row of the key, U writes a column, DA sets it to NULL. "
        "A table needs a primary key in the property tablestore.primary_key. DML that reads the records of a stream moves it; "
        "the records of a table move nothing. Numbers are versions, texts are times. streamql export writes the tuples to "
        "files, from job files of DataX.",
        (
            "ALTER TABLE orders SET TBLPROPERTIES ('tablestore.primary_key' = 'id');",
            "INSERT INTO orders VALUES (7, 70);",
            "SELECT id, columnName, columnValue, opType FROM tablestore_records('orders_st');",
            "SELECT * FROM tablestore_records('orders', 1);",
        ),
        ("6-tuples", "export", "StreamReader", "DataX", "TableStore"),
    ),
)
