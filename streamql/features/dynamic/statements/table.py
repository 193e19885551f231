"""How each statement about dynamic tables is run."""

from __future__ import annotations

from streamql.engine import StatementType, without_text
from streamql.engine.show import CREATE_COLUMNS, DESCRIBE_COLUMNS
from streamql.features.dynamic.language.statements import (
    AlterDynamicTable,
    CreateDynamicTable,
    DescribeDynamicTable,
    DropDynamicTable,
    ExplainRefresh,
    RefreshDynamicTable,
    ShowCreateDynamicTable,
    ShowDynamicTables,
    ShowRefreshHistory,
    VerifyDynamicTable,
)
from streamql.features.dynamic.statements.create import create_dynamic
from streamql.features.dynamic.statements.ddl import alter_dynamic, drop_dynamic
from streamql.features.dynamic.statements.show import (
    EXPLAIN_COLUMNS,
    HISTORY_COLUMNS,
    REFRESH_COLUMNS,
    TABLES_COLUMNS,
    VERIFY_COLUMNS,
    describe_dynamic_table,
    explain_refresh,
    refresh_dynamic_table,
    show_create_dynamic_table,
    show_dynamic_tables,
    show_refresh_history,
    verify_dynamic_table,
)

STATEMENTS = (
    StatementType(CreateDynamicTable, create_dynamic),
    StatementType(AlterDynamicTable, alter_dynamic),
    StatementType(DropDynamicTable, drop_dynamic),
    StatementType(ShowDynamicTables, without_text(show_dynamic_tables), TABLES_COLUMNS),
    StatementType(DescribeDynamicTable, without_text(describe_dynamic_table), DESCRIBE_COLUMNS),
    StatementType(ShowCreateDynamicTable, without_text(show_create_dynamic_table), CREATE_COLUMNS),
    StatementType(ShowRefreshHistory, without_text(show_refresh_history), HISTORY_COLUMNS),
    StatementType(RefreshDynamicTable, without_text(refresh_dynamic_table), REFRESH_COLUMNS),
    StatementType(VerifyDynamicTable, without_text(verify_dynamic_table), VERIFY_COLUMNS),
    StatementType(ExplainRefresh, without_text(explain_refresh), EXPLAIN_COLUMNS),
)
