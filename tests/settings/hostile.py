"""Settings of Spark and Delta that change what a text, a type, a new table or a file is, each with a value that is not the default.

What is a user's own to say stays in force for the user's statements: the steps of `scenario.py` mean the same under all of these.
"""

from __future__ import annotations

from collections.abc import Mapping

LEGACY = {
    f"spark.sql.legacy.{name}": value
    for name, value in {
        "allowNegativeScaleOfDecimal": "true",
        "bangEqualsNot": "true",
        "castComplexTypesToString.enabled": "true",
        "charVarcharAsString": "true",
        "consecutiveStringLiterals.enabled": "true",
        "createEmptyCollectionUsingStringType": "true",
        "createHiveTableByDefault": "true",
        "ctePrecedencePolicy": "LEGACY",
        "exponentLiteralAsDecimal.enabled": "true",
        "interval.enabled": "true",
        "keepCommandOutputSchema": "true",
        "notReserveProperties": "true",
        "parseNullPartitionSpecAsStringLiteral": "true",
        "parser.havingWithoutGroupByAsWhere": "true",
        "setopsPrecedence.enabled": "true",
        "sizeOfNull": "false",
        "timeParserPolicy": "LEGACY",
        "typeCoercion.datetimeToString.enabled": "true",
        "useCurrentConfigsForView": "true",
        "useV1Command": "true",
        "viewSchemaCompensation": "false",
    }.items()
}

LANGUAGE = {
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.caseSensitive": "true",
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.groupByAliases": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.retainGroupColumns": "false",
    "spark.sql.sources.default": "parquet",
    "spark.sql.variable.substitute": "false",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.selfJoinAutoResolveAmbiguity": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
}

KEYWORDS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.ansi.relationPrecedence": "true",
    "spark.sql.storeAssignmentPolicy": "STRICT",
    "spark.sql.preserveCharVarcharTypeInfo": "true",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.ui.explainMode": "extended",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
}

OTHER_CATALOG = {
    "spark.sql.catalog.elsewhere": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.elsewhere.driver": "org.sqlite.JDBC",
    "spark.sql.catalog.elsewhere.url": "jdbc:sqlite::memory:",
    "spark.sql.defaultCatalog": "elsewhere",
}
"""New sessions, clones among them, begin in a catalog that has no Delta tables."""

TABLE_DEFAULTS = {
    f"spark.databricks.delta.properties.defaults.{name}": value
    for name, value in {
        "appendOnly": "true",
        "checkpointPolicy": "v2",
        "columnMapping.mode": "name",
        "enableInCommitTimestamps": "false",
        "enableRowTracking": "true",
        "feature.timestampNtz": "supported",
        "minReaderVersion": "3",
        "minWriterVersion": "7",
    }.items()
}

FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
"""Not one of TABLE_DEFAULTS: where new tables also have a column mapping, Delta itself refuses CREATE TABLE AS."""

STORAGE = {
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.columnVector.offheap.enabled": "true",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in (
            "CollapseProject",
            "ColumnPruning",
            "ConstantFolding",
            "ConvertToLocalRelation",
        )
    ),
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.parquet.writeLegacyFormat": "true",
}

BUNDLES: Mapping[str, Mapping[str, str]] = {
    "language": {**LANGUAGE, **LEGACY, **FEED},
    "tables and storage": {**KEYWORDS, **OTHER_CATALOG, **TABLE_DEFAULTS, **STORAGE},
}
"""Settings that may be in force together."""

GROUPS = (LANGUAGE, LEGACY, KEYWORDS, TABLE_DEFAULTS, FEED, STORAGE)
SINGLE: Mapping[str, Mapping[str, str]] = {
    **{f"{key}={value}": {key: value} for group in GROUPS for key, value in group.items()},
    "spark.sql.defaultCatalog": OTHER_CATALOG,
}
"""Each setting alone."""

FOR_TRANSCRIPTS = ("05", "07", "08", "11", "15", "16", "17", "19")
"""Transcripts that say the same under these settings; others show how Spark itself answers, which some settings change."""
FOR_TRANSCRIPTS_SET = {
    key: LANGUAGE[key]
    for key in (
        "spark.sql.timestampType",
        "spark.sql.caseSensitive",
        "spark.sql.datetime.java8API.enabled",
        "spark.sql.groupByAliases",
        "spark.sql.mapKeyDedupPolicy",
        "spark.sql.parser.escapedStringLiterals",
    )
}
