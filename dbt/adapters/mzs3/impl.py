"""The adapter: extends dbt-spark's, with methods that dbt and our macros call."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.column import SparkColumn
from dbt_common.behavior_flags import BehaviorFlag
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.mzs3.catalogs import CatalogAdapter
from dbt.adapters.mzs3.compiled_job import render_copy_job, render_shard_job
from dbt.adapters.mzs3.connections import Mzs3ConnectionManager, as_dbt_errors
from dbt.adapters.mzs3.credentials import SESSION, SPARK_SUBMIT, require_spark
from dbt.adapters.mzs3.dbt_log import AS_ERRORS
from dbt.adapters.mzs3.errors import S3Error
from dbt.adapters.mzs3.events import Committed
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.operations import OPERATIONS
from dbt.adapters.mzs3.project.declarations import (
    check_declarations,
    export_options,
    refuse_to_build_sources,
    shard_options,
)
from dbt.adapters.mzs3.project.freshness import freshness_from_s3
from dbt.adapters.mzs3.project.overlaps import find_overlaps, require_own
from dbt.adapters.mzs3.project.source_runs import is_empty_run
from dbt.adapters.mzs3.project.staging import (
    make_source_relation,
    stage_for_node,
    stage_for_run_hook,
    who_ingests,
)
from dbt.adapters.mzs3.python_job import JobHelper, job_response, notice_of_commit
from dbt.adapters.mzs3.runner import runner_for
from dbt.adapters.mzs3.shard.options import parse_shard_options
from dbt.adapters.mzs3.spark.job import Call
from dbt.adapters.mzs3.spark.sql import quote_identifier, quote_literal
from dbt.adapters.mzs3.spark.tables import load_seed, schema_names
from dbt.adapters.mzs3.store.check import check_connection
from dbt.adapters.mzs3.types.table import fits_bigint

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("mzs3")

_GRANT_STATEMENT = re.compile(r"\s*(?:show\s+)?(?:grants?|revoke)\b", re.IGNORECASE)
_SYNTAX_ERROR = "SQLSTATE: 42601"
_NO_GRANTS = (
    "\nSpark itself rules no access, and has no GRANT: leave out the config `grants`, and grant "
    "where access is ruled, such as in the catalog or the store"
)
COPY_FLAG = "enable_copy_to_s3"
PACKAGES = (
    *("audit_helper", "dbt_artifacts", "dbt_expectations", "dbt_external_tables", "dbt_utils"),
)
"""The dbt packages for which the adapter has macros of its own, in `macros/packages/`."""
_ADAPTERS = "dbt"  # the name of all adapters' macros in dbt's search orders


class Mzs3Adapter(CatalogAdapter):
    """dbt's adapter of `type: mzs3`.

    It declares no model options to dbt, which would not check their names and types;
    `export/options.py` and `shard/options.py` do.
    """

    ConnectionManager = Mzs3ConnectionManager
    # Not the capability for freshness in batches, with which each source's response is lost.
    _capabilities = CapabilityDict(
        {Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)}
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        search_own_macros(config)
        self._listing_lock = threading.RLock()
        self.overlaps: Mapping[str, Sequence[str]] = {}

    def set_macro_context_generator(self, macro_context_generator: Any) -> None:
        """Extends dbt's method, which begins an invocation. Raises DbtRuntimeError if another
        invocation is running with this adapter."""
        self.connections.require_own_thread()
        super().set_macro_context_generator(macro_context_generator)

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """Extends dbt's method: also checks the parsed project, before Spark starts."""
        super().set_macro_resolver(macro_resolver)
        refuse_to_build_sources(self.config.args)
        command = getattr(self.config.args, "which", None)
        credentials = self.config.credentials
        connections, catalog = credentials.connections, credentials.default_catalog
        self.overlaps = find_overlaps(macro_resolver, connections, catalog)
        check_declarations(command, macro_resolver, connections, self.overlaps)

    # --- relations -------------------------------------------------------------------------

    def set_relations_cache(
        self,
        relation_configs: Iterable[RelationConfig],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Lists no relations yet, so that a run that needs none does not start Spark."""
        if clear:
            self.cache.clear()

    @available.parse_list
    def list_relations(self, database: str | None, schema: str) -> list[BaseRelation]:
        """The relations of a schema, from the cache once it has been listed."""
        database, schema = None, self.schema_in(database, schema)
        # One at a time: a listing must not add relations that another thread has dropped.
        with self._listing_lock:
            cached = self._schema_is_cached(database, schema)
            relations: list[BaseRelation] = super().list_relations(database, schema)
            if not cached:
                self.cache.update_schemas([(database, schema)])
        return relations

    @classmethod
    def quote(cls, identifier: str | None) -> str:
        """The identifier, quoted for Spark."""
        # dbt also passes the database, which is None here.
        return quote_identifier(str(identifier))

    @available
    def quote_literal(self, text: str) -> str:
        """The text as a literal of Spark's SQL."""
        return quote_literal(text)

    def valid_incremental_strategies(self) -> list[str]:
        """All of dbt-spark's; each model checks whether its file format supports its strategy."""
        return ["append", "insert_overwrite", "merge", "microbatch"]

    # --- Python jobs -----------------------------------------------------------------------

    @property
    def default_python_submission_method(self) -> str:
        """`spark_submit` if the profile has that, else `session`, which is dbt-spark's."""
        method: str = self.config.credentials.submission_method
        return method

    @property
    def python_submission_helpers(self) -> dict[str, Any]:
        """The ways to run Python models, by their `submission_method`."""
        return {
            method: partial(JobHelper, connections=self.connections, submission_method=method)
            for method in (SESSION, SPARK_SUBMIT)
        }

    def generate_python_submission_response(self, submission_result: Any) -> AdapterResponse:
        """The response for a Python job."""
        if isinstance(submission_result, Committed):
            self.connections.node.committed = submission_result
        response: AdapterResponse = self.connections.with_reads(job_response(submission_result))
        return response

    @property
    def _behavior_flags(self) -> list[BehaviorFlag]:
        """The flags that a project may set in its dbt_project.yml."""
        return [
            {  # type: ignore[typeddict-item]  # what it misses is optional from Python 3.11 on
                "name": COPY_FLAG,
                "default": True,
                "description": "Whether models may export to S3 with copy_to_s3.",
            }
        ]

    @available.parse(lambda *_args, **_kwargs: "")
    def compile_copy_job(
        self, node: Any, query: str, relation: BaseRelation, full_refresh: bool = False
    ) -> str:
        """The source of a `copy_to_s3` model's job. Raises DbtRuntimeError with all problems."""
        name, options = node.unique_id, export_options(node, self.get_macro_resolver())
        if not getattr(self.behavior, COPY_FLAG).no_warn:
            raise DbtRuntimeError(
                f"copy_to_s3 is turned off for this project by the flag {COPY_FLAG} in "
                f"dbt_project.yml; to export {name}, set it to true there, or remove it"
            )
        credentials = self.config.credentials
        with as_dbt_errors():
            require_spark(credentials, name)
            parse_options(name, options, credentials.connections)
        return render_copy_job(
            name,
            query,
            options,
            schema=str(relation.schema),
            identifier=str(relation.identifier),
            full_refresh=full_refresh,
        )

    @available.parse(lambda *_args, **_kwargs: "")
    def compile_shard_job(self, node: Any, query: str) -> str:
        """The source of a `persist_shard` model's job. Raises as `compile_copy_job` does."""
        name, options = node.unique_id, shard_options(node, self.get_macro_resolver())
        credentials = self.config.credentials
        with as_dbt_errors():
            require_spark(credentials, name)
            parse_shard_options(name, options, credentials.connections)
        return render_shard_job(name, query, options)

    @available.parse_none
    def narrowed_by(self) -> str | None:
        """The flag, if any, with which models read only a part of their inputs."""
        if is_empty_run(self):
            return "--empty"
        return None if getattr(self.config.args, "SAMPLE", None) is None else "--sample"

    # --- run-operations --------------------------------------------------------------------

    @available.parse_none
    def run_operation(self, operation: str, *arguments: Any) -> None:
        """Runs a run-operation. Raises dbt's errors, also after Ctrl-C."""
        try:
            with as_dbt_errors():
                OPERATIONS[operation](self, *arguments)
        except KeyboardInterrupt:
            self.connections.leftovers.raise_if_interrupted()

    # --- Sources ---------------------------------------------------------------------------

    def pre_model_hook(self, config: Any) -> None:
        """Before a node: ingests or reads its sources, and raises if another node also writes, or
        drops, what the node writes.

        Removes a `file_format` of none or an empty text, which projects for several adapters set:
        dbt-spark would refuse it, or render `using none`.
        """
        self.connections.node.begin()
        options = config.model.config.extra
        if str(options.get("file_format") or "none").lower() == "none":
            options.pop("file_format", None)
        with as_dbt_errors():
            require_own(self, config.model)
        is_seed = config.model.resource_type == "seed"  # which reads no source
        if not is_seed:
            self.connections.node.fetched = stage_for_node(self, config.model)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """After a node: fails it if one of its warnings is an error by dbt's flags. If it fails
        after its commit, for example in a post-hook, the error says what was committed."""
        failure, committed = sys.exc_info()[1], self.connections.node.committed
        lines = [*self.connections.node.warnings.errors]
        why = "its post-hook failed or was cut off" if failure else AS_ERRORS
        if committed is not None and (failure or lines):
            lines.append(notice_of_commit(config.model.unique_id, why, committed))
        if not lines:
            return
        text = "\n".join(lines)
        if self.connections.get_thread_connection().handle.cancelled.is_set():
            self.connections.leftovers.add(text)  # dbt does not show errors of cancelled nodes
        if failure is None:
            raise DbtRuntimeError(text)
        if isinstance(failure, DbtRuntimeError):
            failure.msg = f"{failure.msg}\n{text}"
        else:
            logger.error(text)

    @available.parse(lambda *_args, **_kwargs: ("", None))
    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> Any:
        """Extends dbt's method: first ingests the sources that a hook of the run reads. Errors add
        how to ingest a missing source, and that Spark has no grants."""
        stage_for_run_hook(self)
        try:
            return super().execute(sql, auto_begin, fetch, limit)
        except DbtDatabaseError as exc:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(exc.msg) and (hint := who_ingests(self, sql)):
                raise DbtDatabaseError(f"{exc.msg}{hint}") from exc
            if _SYNTAX_ERROR in str(exc.msg) and _GRANT_STATEMENT.match(sql):
                raise DbtDatabaseError(f"{exc.msg}{_NO_GRANTS}") from exc
            raise

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns; creates the relation of a source that was never ingested or read."""
        columns: list[SparkColumn] = super().get_columns_in_relation(relation)
        if not columns and make_source_relation(self, relation):
            columns = super().get_columns_in_relation(relation)
        return columns

    def clear_transaction(self) -> None:
        """Does nothing: Spark has no transactions, and dbt's own would start Spark."""

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[AdapterResponse, Any]:
        """The freshness of a source, from S3's own timestamps."""
        response, newest, looked_at = freshness_from_s3(self, source, macro_resolver)
        return response, self._create_freshness_response(newest, looked_at)

    # --- seeds -----------------------------------------------------------------------------

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """`bigint`, or `decimal(38,0)` where a value of the column needs it."""
        values = agate_table.columns[col_idx].values_without_nulls()
        fits = all(map(fits_bigint, values))
        return "bigint" if fits else "decimal(38,0)"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """`double` if a value has decimals, else the result of `convert_integer_type`."""
        kind: str = super().convert_number_type(agate_table, col_idx)
        return cls.convert_integer_type(agate_table, col_idx) if kind == "bigint" else kind

    @available.parse(lambda *_args, **_kwargs: True)
    def has_session(self) -> bool:
        """Whether the connection holds a Spark session."""
        return bool(self.config.credentials.has_session)

    @available.parse(lambda *_args, **_kwargs: "")
    def load_seed_rows(
        self, relation: BaseRelation, agate_table: agate.Table, column_types: dict[str, str]
    ) -> str:
        """Loads a seed's rows in one write. Returns the text that `target/run` shows."""
        names = [str(name) for name in agate_table.column_names]
        types = [
            column_types.get(name, self.convert_type(agate_table, index))
            for index, name in enumerate(names)
        ]
        columns = [column.values() for column in agate_table.columns]
        table = relation.render()
        with self.connections.exception_handler(f"loading {table}"):
            handle = self.connections.get_thread_connection().handle
            load_seed(handle.session, table, names, columns, types)
        return f"-- {len(agate_table.rows)} rows, written to {table} as one DataFrame"

    # --- dbt debug -------------------------------------------------------------------------

    def debug_query(self) -> None:
        """For `dbt debug`: checks Spark, jobs of `spark_submit` if set, and AWS connections."""
        super().debug_query()
        credentials = self.config.credentials
        problems: list[str] = []
        if credentials.submit_options is not None:
            problems += self._problems_of_jobs()
        for name, connection in credentials.connections.items():
            if name not in credentials.aws_connections:
                logger.info(f"  aws {name}: not in the profile; boto3's own chain is used")
                continue
            try:
                logger.info(f"  aws {name}: {check_connection(connection)}")
            except S3Error as exc:
                problems.append(str(exc))
        if problems:
            raise DbtRuntimeError("\n".join(problems))

    def _problems_of_jobs(self) -> list[str]:
        """Submits a job. Returns a problem if it does not see all schemas of the server."""
        _, on_server = self.execute("show schemas", fetch=True)
        with as_dbt_errors(), runner_for(self.config.credentials) as runner:
            in_job = runner.run(Call(schema_names, {}), "dbt debug")
        if missing := sorted({str(row[0]) for row in on_server.rows} - {*in_job}):
            return [
                f"jobs of spark-submit do not see {', '.join(missing)}, which the server has: "
                "they have another metastore; spark_submit.conf must name the server's"
            ]
        logger.info(f"  spark-submit: a job ran, and sees the server's {len(in_job)} schemas")
        return []

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {**super()._get_adapter_specific_run_info(config), "adapter_type": "mzs3"}


def search_own_macros(config: Any) -> None:
    """Makes dbt use the adapter's own macros for PACKAGES instead of the packages', except where
    the project has one.

    dbt searches adapters' macros for a package only if `dispatch` in dbt_project.yml has them; a
    project that has such an entry keeps its order. As a side effect, dbt's own `date_spine` and
    `generate_series` replace those of dbt_utils, of which they are copies.
    """
    if not hasattr(config, "dispatch"):  # the command needs no project
        return
    orders: dict[str, list[str]] = {}
    for entry in config.dispatch:  # if a package has several entries, dbt uses the first
        orders.setdefault(entry["macro_namespace"], entry["search_order"])
    for package in PACKAGES:
        order = orders.get(package, [config.project_name, package])
        if _ADAPTERS not in order and package in order:
            index = order.index(package)
            orders[package] = [*order[:index], _ADAPTERS, *order[index:]]
    config.dispatch = [
        {"macro_namespace": package, "search_order": order} for package, order in orders.items()
    ]
