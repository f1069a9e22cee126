"""The adapter that dbt talks to: dbt-spark's, where it is right, and thin everywhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
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
from dbt.adapters.spark.impl import SparkAdapter, SparkConfig
from dbt_common.behavior_flags import BehaviorFlag
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.mzs3.aws.check import check_connection
from dbt.adapters.mzs3.connections import Mzs3ConnectionManager, as_dbt_error
from dbt.adapters.mzs3.credentials import require_session
from dbt.adapters.mzs3.csv_source.operations.object_actions import ObjectAction
from dbt.adapters.mzs3.errors import Mzs3Error, S3Error
from dbt.adapters.mzs3.export.options import parse_options
from dbt.adapters.mzs3.jobs import render_copy_job
from dbt.adapters.mzs3.operations import locations, sources
from dbt.adapters.mzs3.project.declarations import check_declarations, compile_shard_job
from dbt.adapters.mzs3.project.freshness import freshness_from_s3
from dbt.adapters.mzs3.project.shard_sources import make_shard_relation, read_shards_for_node
from dbt.adapters.mzs3.project.source_runs import is_empty_run
from dbt.adapters.mzs3.project.staging import make_source_relation, stage_for_node, who_ingests
from dbt.adapters.mzs3.python_job import SessionJobHelper, job_response
from dbt.adapters.mzs3.spark.sql import quote_identifier
from dbt.adapters.mzs3.spark.tables import load_seed

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("mzs3")

_SQL_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_MAX_BIGINT = 2**63
COPY_FLAG = "enable_copy_to_s3"


@dataclass
class Mzs3Config(SparkConfig):
    """The options of models: dbt-spark's, and those of `copy_to_s3`.

    dbt does not check their types; `copy_to_s3` checks its own before the model runs.

    - location: `s3://bucket/prefix`, or a SQL expression for it that may use `mz_now()`
    - aws_connection: a name under `aws_connections` in the profile
    - format: `csv` or `parquet`
    - compression: `none`, `gzip`, `zstd`; for Parquet also `snappy`, its default, and `lz4`
    - max_file_size, part_size, max_multi_part_bytes_in_memory: bytes, or text such as `'256MB'`
    - parts: how many parts the rows are hashed into
    - partition_by: a column or several, which become folders such as `country=NZ/`
    - single_file: the name of the one object that holds the whole result
    - on_existing: `fail`, `overwrite` or `resume`, where the location is not empty
    - header, delimiter, quote, escape, null, force_quote: the CSV dialect, as in PostgreSQL
    - mode, encoding, sort_by, column_defaults, column_renames, column_types: of `persist_shard`
    - encryption, kms_key_id, storage_class, object_tags, acl: passed to S3 with each file
    """

    location: str | None = None
    aws_connection: str | None = None
    format: str | None = None
    compression: str | None = None
    max_file_size: str | int | None = None
    part_size: str | int | None = None
    max_multi_part_bytes_in_memory: str | int | None = None
    parts: int | None = None
    partition_by: str | list[str] | None = None
    single_file: str | None = None
    on_existing: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    null: str | None = None
    force_quote: str | list[str] | None = None
    mode: str | None = None
    encoding: str | None = None
    sort_by: str | list[str] | None = None
    column_defaults: dict[str, Any] | None = None
    column_renames: dict[str, str] | None = None
    column_types: dict[str, str] | None = None
    encryption: str | None = None
    kms_key_id: str | None = None
    storage_class: str | None = None
    object_tags: dict[str, str] | None = None
    acl: str | None = None


class Mzs3Adapter(SparkAdapter):
    """dbt's adapter of `type: mzs3`."""

    ConnectionManager = Mzs3ConnectionManager
    AdapterSpecificConfigs = Mzs3Config
    # Not for batches of sources: dbt would drop what each one's response says.
    _capabilities = CapabilityDict(
        {Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)}
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self._listing = threading.RLock()

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """The project has been parsed: what is wrong with it is told before Spark starts."""
        super().set_macro_resolver(macro_resolver)
        command = getattr(self.config.args, "which", None)
        check_declarations(command, macro_resolver, self.config.credentials.connections)

    # --- relations -------------------------------------------------------------------------

    def set_relations_cache(
        self,
        relation_configs: Iterable[RelationConfig],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Lists nothing yet: a schema is listed when a node first asks for one of its relations.

        So a run that asks for none, such as `dbt source freshness`, never starts Spark.
        """
        if clear:
            self.cache.clear()

    def list_relations(self, database: str | None, schema: str) -> list[BaseRelation]:
        """The relations of a schema, from the cache once it has been listed."""
        # One at a time, so that a listing never brings back what another thread has dropped.
        with self._listing:
            cached = self._schema_is_cached(database, schema)
            relations: list[BaseRelation] = super().list_relations(database, schema)
            if not cached:
                self.cache.update_schemas([(database, schema)])
        return relations

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """The schema's tables and views; not the session's temporary views, which have none."""
        relations = super().list_relations_without_caching(schema_relation)
        return [relation for relation in relations if relation.schema]

    def parse_columns_from_information(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns, counted from 1, with SQL's names of types: `bigint`, not `long`."""
        columns: list[SparkColumn] = super().parse_columns_from_information(relation)
        for number, column in enumerate(columns, start=1):
            column.column_index = number
            column.dtype = _SQL_TYPES.get(column.dtype, column.dtype)
        return columns

    @classmethod
    def quote(cls, identifier: str | None) -> str:
        """The identifier in backticks, whatever is in it."""
        # dbt quotes the database too, which Spark's relations don't have.
        return quote_identifier(str(identifier))

    def valid_incremental_strategies(self) -> list[str]:
        """dbt-spark's strategies; which of them a file format can do is checked per model."""
        return ["append", "insert_overwrite", "merge", "microbatch"]

    # --- Python jobs -----------------------------------------------------------------------

    @property
    def default_python_submission_method(self) -> str:
        """Python models run in dbt's own session unless they say otherwise."""
        return "session"

    @property
    def python_submission_helpers(self) -> dict[str, Any]:
        """How Python models can be run."""
        return {"session": partial(SessionJobHelper, connections=self.connections)}

    def generate_python_submission_response(self, submission_result: Any) -> AdapterResponse:
        """What the job left in `result`, as dbt's response."""
        return job_response(submission_result)

    @property
    def _behavior_flags(self) -> list[BehaviorFlag]:
        """What a project may turn off under `flags:` in its dbt_project.yml."""
        return [
            {  # type: ignore[typeddict-item]  # what it misses is optional from Python 3.11 on
                "name": COPY_FLAG,
                "default": True,
                "description": "Whether models may export to S3 with copy_to_s3.",
            }
        ]

    @available.parse(lambda *_args, **_kwargs: "")
    def compile_copy_job(
        self,
        node: str,
        query: str,
        options: dict[str, Any],
        relation: BaseRelation,
        full_refresh: bool = False,
    ) -> str:
        """The PySpark job of a `copy_to_s3` model; fails on any option that is wrong.

        It creates nothing. `relation` is the model's.
        """
        if not getattr(self.behavior, COPY_FLAG).no_warn:
            raise DbtRuntimeError(
                f"copy_to_s3 is turned off for this project by the flag {COPY_FLAG} in "
                f"dbt_project.yml; to export {node}, set it to true there, or remove it"
            )
        try:
            require_session(self.config.credentials.method, f"{node}: copy_to_s3")
            parse_options(node, options, self.config.credentials.connections)
            return render_copy_job(
                node,
                query,
                options,
                schema=str(relation.schema),
                identifier=str(relation.identifier),
                full_refresh=full_refresh,
            )
        except Mzs3Error as exc:
            raise as_dbt_error(exc) from exc

    @available.parse(lambda *_args, **_kwargs: "")
    def compile_shard_job(self, node: Any, query: str) -> str:
        """The PySpark job of a `persist_shard` model; fails on any option that is wrong."""
        return compile_shard_job(self.config.credentials, node, query)

    @available.parse_none
    def narrowed_by(self) -> str | None:
        """The flag with which models see a part of what they read; None where they see all."""
        if is_empty_run(self):
            return "--empty"
        return None if getattr(self.config.args, "SAMPLE", None) is None else "--sample"

    # --- run-operations --------------------------------------------------------------------

    @available.parse_none
    def validate_aws_connection(self, name: Any, location: Any, queue: Any) -> None:
        """Try what exports need on a prefix, and sources on a queue."""
        locations.validate(self, name, location, queue)

    @available.parse_none
    def verify_copy(self, location: Any, aws_connection: Any) -> None:
        """Compare an export with its manifest."""
        locations.verify(self, location, aws_connection)

    @available.parse_none
    def describe_shard(self, location: Any, aws_connection: Any) -> None:
        """Print a shard's columns and batches."""
        locations.describe_shard(self, location, aws_connection)

    @available.parse_none
    def compact_shard(self, location: Any, aws_connection: Any, how: Any) -> None:
        """Make one batch of those up to a time, and remove files that no batch names."""
        locations.compact(self, location, aws_connection, how)

    @available.parse_none
    def copy_report(self, schema: Any, path: Any, days: Any) -> None:
        """Write a page about the exports of the last days."""
        locations.report(self, schema, path, days)

    @available.parse_none
    def ingest_s3_sources(self, select: Any) -> None:
        """Ingest the named sources, or all."""
        sources.ingest(self, select)

    @available.parse_none
    def s3_source_status(self, select: Any) -> None:
        """A table of how the named sources stand, or all."""
        sources.show_status(self, select)

    @available.parse_none
    def purify_s3_sources(self, select: Any) -> None:
        """Show the purified definitions of the named sources, or of all."""
        sources.show_purified(self, select)

    @available.parse_none
    def act_on_s3_objects(self, operation: str, source: Any, objects: Any) -> None:
        """Retry, skip or retract objects, by the name of the operation."""
        sources.act_on_objects(self, ObjectAction(operation), source, objects)

    @available.parse_none
    def reset_s3_source(self, source: Any, confirm: Any) -> None:
        """Drop all that was ingested of a source."""
        sources.reset(self, source, confirm)

    @available.parse_none
    def unlock_s3_source(self, source: Any) -> None:
        """Take the lock of one source away from whoever has it."""
        sources.unlock_source(self, source)

    # --- S3 CSV sources --------------------------------------------------------------------

    def pre_model_hook(self, config: Any) -> None:
        """Ingest what the node needs, before it runs."""
        if config.model.resource_type != "seed":  # seeds read no source
            stage_for_node(self, config.model)
            read_shards_for_node(self, config.model)

    @available.parse(lambda *_args, **_kwargs: ("", None))
    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> Any:
        """As dbt's own; says how to ingest a source that the query reads and that is not there."""
        try:
            return super().execute(sql, auto_begin, fetch, limit)
        except DbtDatabaseError as exc:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(exc.msg) and (hint := who_ingests(self, sql)):
                raise DbtDatabaseError(f"{exc.msg}{hint}") from exc
            raise

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns; a source that was never ingested or read gets its relations for that."""
        columns: list[SparkColumn] = super().get_columns_in_relation(relation)
        if columns:
            return columns
        if make_source_relation(self, relation) or make_shard_relation(self, relation):
            columns = super().get_columns_in_relation(relation)
        return columns

    def clear_transaction(self) -> None:
        """Nothing: Spark has no transactions, and dbt's way of clearing one would start Spark."""

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[AdapterResponse, Any]:
        """How fresh an S3 CSV source is, from S3 alone; Spark is not started for it."""
        response, newest, looked_at = freshness_from_s3(self, source, macro_resolver)
        return response, self._create_freshness_response(newest, looked_at)

    # --- seeds -----------------------------------------------------------------------------

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """`bigint`, or `decimal(38,0)` where a value of the column needs it."""
        values = agate_table.columns[col_idx].values_without_nulls()
        fits = all(-_MAX_BIGINT <= value < _MAX_BIGINT for value in values)
        return "bigint" if fits else "decimal(38,0)"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """`double` where a value has decimals; integers that dbt finds too large come here too."""
        found: str = super().convert_number_type(agate_table, col_idx)
        return cls.convert_integer_type(agate_table, col_idx) if found == "bigint" else found

    @available.parse(lambda *_args, **_kwargs: "")
    def load_seed_rows(
        self, relation: BaseRelation, agate_table: agate.Table, column_types: dict[str, str]
    ) -> str:
        """Load a seed's rows in one write; what `target/run` shows for it."""
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
        """`dbt debug`: Spark answers, and so does each AWS connection of the profile."""
        super().debug_query()
        credentials = self.config.credentials
        problems: list[str] = []
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

    @classmethod
    def _get_adapter_specific_run_info(cls, config: RelationConfig) -> dict[str, Any]:
        return {**super()._get_adapter_specific_run_info(config), "adapter_type": "mzs3"}
