"""A checker of the consumption protocol that drives the product's own code: stateless model checking.

The Python of `streamql.consume`, `streamql.catalog`, `streamql.delta`, `streamql.reading` and `streamql.engine` runs as it is. What is put
in its place is the JVM behind it (`jvm`, `statements`: the few Scala classes that Python talks to, over Delta logs in memory), the clocks
and process ids (`stage`), and the threads (`scheduler`): exactly one actor runs at a time, and yields at every call into the JVM.

At each such call somebody else may go on, the process may die before or after the call took effect, or while the JVM still works on it, the
answer may get lost, Delta may take the commit for a conflict with itself, a lease may be found ended. `explore` goes through these
schedules: all with one deviation from the plain run, then with two and more as far as the number of schedules allows, chosen by a seed.
After each, a healthy consumer drains the streams, and `invariants` looks at what is in the logs.

A schedule is written as its deviations: `12:B 20:later` is the plain run, but at the 12th choice B goes on instead of who would, and at
the 20th whoever sleeps there wakes to find that a long time has passed.

What the world leaves out: INSERT stands for all writes that are analysed with their table, so no UPDATE or MERGE conflicts of its own type
(FAIL stands for them); DROP TABLE is one step; no RESTORE of the catalog, no clones, no commit coordinators; one source and target schema.

    pytest tests/protocol                                      # the normal size
    STREAMQL_LONG=20 pytest tests/protocol                     # 20 times as many schedules, more deviations in each
    python -m tests.protocol                                   # the scenarios
    python -m tests.protocol 'two inserts' 12:B 20:later        # one schedule of one, as a trace
"""
