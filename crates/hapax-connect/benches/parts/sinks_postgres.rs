//! PostgreSQL's sinks, for the deliveries that are measured.

use hapax_connect::postgres::{PostgresIdempotentSink, PostgresSink, PostgresSinkConfig};
use hapax_connect::table::config::TableConfig;
use hapax_model::key::DedupStrategy;
use hapax_model::position::DeliveryId;
use hapax_sql::postgres::{Pool, PostgresUrl};

use super::by_hapax::Sinks;

pub(crate) struct Postgres;

impl Sinks for Postgres {
    type Config = PostgresSinkConfig;
    type Pool = Pool;
    type Transactional = PostgresSink;
    type Idempotent = PostgresIdempotentSink;

    fn config(url: &str, table: &str) -> PostgresSinkConfig {
        PostgresSinkConfig::new(PostgresUrl::parse(url).expect("a URL"), table)
    }

    fn table(config: &mut PostgresSinkConfig) -> &mut TableConfig {
        &mut config.table
    }

    fn pool(config: &PostgresSinkConfig) -> Pool {
        config.pool()
    }

    fn transactional(config: PostgresSinkConfig, pool: Pool, id: DeliveryId) -> PostgresSink {
        PostgresSink::new(config, pool, id)
    }

    fn idempotent(config: PostgresSinkConfig, pool: Pool, strategy: DedupStrategy) -> PostgresIdempotentSink {
        PostgresIdempotentSink::new(config, pool, strategy)
    }
}
