//! What a part's connector is told, and the sink, the look at the live table and the table's kind that come from it.

#[cfg(feature = "mysql")]
use hapax_connect::mysql::config as mysql;
#[cfg(feature = "postgres")]
use hapax_connect::postgres::config as postgres;
use hapax_connect::sqlite::config::{self as sqlite, Deletes, TableConfig, UniqueKeys};
use hapax_connect::sqlite::inspect::check_live;
use hapax_connect::table::ddl;
use hapax_connect::table::described::SampledField;
use hapax_connect::table::mapping::NO_TABLE;
use hapax_engine::runtime::Settings;
use hapax_engine::sink::{IdempotentSink as _, Target as _, TargetIdentity};
use hapax_engine::state_progress::{AfterCrash, StateProgress, WatchKeys};
use hapax_model::audit::TableKind;
use hapax_model::delivery::Guarantee;
use hapax_model::mode::ProgressPlace;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use super::pools;
use super::{AnyBareTable, AnySink, AnyState, AnyTable, Live, Part, Purpose, plan};
#[cfg(feature = "mysql")]
use crate::config::MysqlSink as MysqlSinkConfig;
#[cfg(feature = "postgres")]
use crate::config::PostgresSink as PostgresSinkConfig;
use crate::config::{Columns, SqliteSink as SqliteSinkConfig, Target};
use crate::exit::{Failure, USAGE};

impl Part<'_> {
    /// Reads the live table without writing anything. Where there is none, the first events are looked at, so that the
    /// refusal proposes the whole table.
    pub(crate) async fn live(&self) -> Result<Live, Failure> {
        match self.live_knowing(&[]).await {
            Err(refused) if refused.code == Some(NO_TABLE) => {
                let sampled = self.sampled_fields().await;
                if sampled.is_empty() { Err(refused) } else { self.live_knowing(&sampled).await }
            }
            read => read,
        }
    }

    async fn live_knowing(&self, sampled: &[SampledField]) -> Result<Live, Failure> {
        match &self.sink.target {
            Target::Sqlite(sqlite) => {
                let mut config = self.sqlite_config(sqlite);
                config.table.sampled = sampled.to_vec();
                Ok(check_live(&config).await?.into())
            }
            #[cfg(feature = "postgres")]
            Target::Postgres(postgres) => {
                let mut config = self.postgres_config(postgres);
                config.table.sampled = sampled.to_vec();
                Ok(hapax_connect::postgres::inspect::check_live(&config).await?.into())
            }
            #[cfg(feature = "mysql")]
            Target::Mysql(mysql) => {
                let mut config = self.mysql_config(mysql);
                config.table.sampled = sampled.to_vec();
                Ok(hapax_connect::mysql::inspect::check_live(&config).await?.into())
            }
        }
    }

    async fn sampled_fields(&self) -> Vec<SampledField> {
        Box::pin(crate::sample::sampled_fields(self, &self.table_config().columns.map)).await
    }

    /// The kind of table that it is, as far as the configuration tells.
    pub(crate) const fn table_kind(&self) -> TableKind {
        match &self.sink.target {
            Target::Sqlite(_) => TableKind::Sqlite,
            #[cfg(feature = "postgres")]
            Target::Postgres(_) => TableKind::PostgresLogged,
            #[cfg(feature = "mysql")]
            Target::Mysql(_) => TableKind::InnoDb,
        }
    }

    /// A table that this part could write to, with every field of its first events, if there are some.
    pub(crate) async fn suggested_ddl(&self) -> String {
        let config = TableConfig { sampled: self.sampled_fields().await, ..self.table_config() };
        match &self.sink.target {
            Target::Sqlite(_) => ddl::suggested_ddl::<hapax_connect::sqlite::schema::SqliteColumn>(&config),
            #[cfg(feature = "postgres")]
            Target::Postgres(_) => ddl::suggested_ddl::<hapax_connect::postgres::column::PostgresColumn>(&config),
            #[cfg(feature = "mysql")]
            Target::Mysql(_) => hapax_connect::mysql::ddl::suggested_for(&config, hapax_sql::mysql::Flavour::MariaDb),
        }
    }

    /// The sink of one delivery.
    pub(super) fn open_sink(
        &self,
        settings: &Settings,
        state: Option<&AnyState>,
        purpose: Purpose,
    ) -> Result<AnySink, Failure> {
        match self.table().progress {
            ProgressPlace::Sink => Ok(AnySink::Table(AnyTable::of_part(self, settings.id.clone(), purpose))),
            ProgressPlace::State => {
                let table = AnyBareTable::of_part(self, settings.keyer.strategy().clone(), purpose);
                Ok(AnySink::ByState(Box::new(self.by_state(settings, table, state)?)))
            }
        }
    }

    /// What the live target is to the contract.
    pub(super) async fn target_identity(
        &self,
        settings: &Settings,
        purpose: Purpose,
    ) -> Result<TargetIdentity, Failure> {
        Ok(match self.table().progress {
            ProgressPlace::Sink => AnyTable::of_part(self, settings.id.clone(), purpose).inspect().await?,
            ProgressPlace::State => {
                AnyBareTable::of_part(self, settings.keyer.strategy().clone(), purpose).inspect().await?
            }
        })
    }

    /// A sink that holds none of our tables, joined with progress in the state store.
    fn by_state(
        &self,
        settings: &Settings,
        sink: AnyBareTable,
        state: Option<&AnyState>,
    ) -> Result<StateProgress<AnyBareTable, AnyState>, Failure> {
        let (table, guarantee) = (self.table(), self.workflow.delivery.guarantee);
        let Some(state) = state else {
            let id = &self.workflow.id;
            let message = format!(
                "workflow {id} keeps its progress in the state store, and this process runs without one: name a state \
                 store, and start it again"
            );
            return Err(Failure::new("HX5003", message).with_exit(USAGE));
        };
        let after_crash = match guarantee {
            Guarantee::AtMostOnce => AfterCrash::GiveUp,
            Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => AfterCrash::WriteAgain,
        };
        let watched = plan::watches_keys(table.progress, guarantee);
        let watch = if watched { WatchKeys::Yes } else { WatchKeys::No };
        let joined =
            StateProgress::new(settings.id.clone(), sink, state.clone(), after_crash, watch, table.progress_interval);
        let program = self.workflow.transform.as_ref().map(|transform| transform.text.as_str());
        Ok(joined.configured_as(plan::reading(self.source), plan::making(settings, program)))
    }

    /// What the SQLite connector wants to know.
    pub(super) fn sqlite_config(&self, sqlite: &SqliteSinkConfig) -> sqlite::SqliteSinkConfig {
        sqlite::SqliteSinkConfig {
            table: self.table_config(),
            busy_timeout: sqlite.busy_timeout,
            claim_timeout: self.workflow.delivery.claim_timeout,
            ..sqlite::SqliteSinkConfig::new(&sqlite.path, &sqlite.table.name)
        }
    }

    /// The sessions that this part shares with all others of its database.
    #[cfg(feature = "postgres")]
    pub(super) fn postgres_pool(&self, postgres: &PostgresSinkConfig) -> hapax_sql::postgres::Pool {
        pools::POSTGRES.pool(&postgres.url, &postgres.limits(), postgres.connections)
    }

    /// The sessions that this part shares with all others of its database.
    #[cfg(feature = "mysql")]
    pub(super) fn mysql_pool(&self, mysql: &MysqlSinkConfig) -> hapax_sql::mysql::Pool {
        pools::MYSQL.pool(&mysql.url, &mysql.limits(), mysql.connections)
    }

    /// What the MySQL connector wants to know.
    #[cfg(feature = "mysql")]
    pub(super) fn mysql_config(&self, mysql: &MysqlSinkConfig) -> mysql::MysqlSinkConfig {
        mysql::MysqlSinkConfig {
            table: self.table_config(),
            limits: mysql.limits(),
            claim_timeout: self.workflow.delivery.claim_timeout,
            connections: mysql.connections,
            ..mysql::MysqlSinkConfig::new((*mysql.url).clone(), &mysql.table.name)
        }
    }

    /// What the PostgreSQL connector wants to know.
    #[cfg(feature = "postgres")]
    pub(super) fn postgres_config(&self, postgres: &PostgresSinkConfig) -> postgres::PostgresSinkConfig {
        postgres::PostgresSinkConfig {
            table: self.table_config(),
            limits: postgres.limits(),
            claim_timeout: self.workflow.delivery.claim_timeout,
            connections: postgres.connections,
            ..postgres::PostgresSinkConfig::new((*postgres.url).clone(), &postgres.table.name)
        }
    }

    /// What every connector wants to know of its table.
    fn table_config(&self) -> TableConfig {
        let (table, deduplication) = (self.table(), &self.workflow.delivery.deduplication);
        let map = match &table.columns {
            Columns::Mapped(map) => map.clone(),
            Columns::ByName | Columns::Strict => Vec::new(),
        };
        TableConfig {
            mode: table.on_conflict,
            key_fields: deduplication.key_fields.clone(),
            key_column: table.key_column.clone(),
            version_column: table.version_column.clone(),
            columns: sqlite::Columns { map, ..sqlite::Columns::default() },
            deletes: if table.delete_when.is_some() { Deletes::Some } else { Deletes::Never },
            unique_keys: if deduplication.unique { UniqueKeys::Promised } else { UniqueKeys::NotPromised },
            progress: table.progress,
            ..TableConfig::new(&table.name)
        }
    }
}
