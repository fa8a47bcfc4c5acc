//! MySQL's sinks, for the deliveries that are measured.

use hapax_connect::mysql::{MysqlIdempotentSink, MysqlSink, MysqlSinkConfig};
use hapax_connect::table::config::TableConfig;
use hapax_model::key::DedupStrategy;
use hapax_model::position::DeliveryId;
use hapax_sql::mysql::{MysqlUrl, Pool};

use super::by_hapax::Sinks;

pub(crate) struct Mysql;

impl Sinks for Mysql {
    type Config = MysqlSinkConfig;
    type Pool = Pool;
    type Transactional = MysqlSink;
    type Idempotent = MysqlIdempotentSink;

    fn config(url: &str, table: &str) -> MysqlSinkConfig {
        MysqlSinkConfig::new(MysqlUrl::parse(url).expect("a URL"), table)
    }

    fn table(config: &mut MysqlSinkConfig) -> &mut TableConfig {
        &mut config.table
    }

    fn pool(config: &MysqlSinkConfig) -> Pool {
        config.pool()
    }

    fn transactional(config: MysqlSinkConfig, pool: Pool, id: DeliveryId) -> MysqlSink {
        MysqlSink::new(config, pool, id)
    }

    fn idempotent(config: MysqlSinkConfig, pool: Pool, strategy: DedupStrategy) -> MysqlIdempotentSink {
        MysqlIdempotentSink::new(config, pool, strategy)
    }
}
