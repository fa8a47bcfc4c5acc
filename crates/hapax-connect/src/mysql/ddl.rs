//! Statements that we suggest for MySQL and MariaDB and never run.

use hapax_sql::mysql::Flavour;

use super::column::MysqlColumn;
use super::config::{MysqlSinkConfig, TableConfig};
use crate::table::LiveColumn as _;
use crate::table::ddl;

/// A `CREATE TABLE` that fits the configuration, for a server of which nothing is known yet: MariaDB.
#[must_use]
pub fn suggested_ddl(config: &MysqlSinkConfig) -> String {
    suggested_for(&config.table, Flavour::MariaDb)
}

/// A `CREATE TABLE` that fits the configuration, for text of all characters whatever the server's default is. The
/// collation that compares keys exactly has another name in each server.
#[must_use]
pub fn suggested_for(config: &TableConfig, flavour: Flavour) -> String {
    let text = ddl::suggested_ddl::<MysqlColumn>(config);
    let text = match text.strip_suffix("\n);") {
        Some(columns) => format!("{columns}\n) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;"),
        None => text,
    };
    match flavour {
        Flavour::MariaDb => text,
        Flavour::Mysql => {
            let exact = MysqlColumn::KEY_TYPE.replace("utf8mb4_nopad_bin", "utf8mb4_0900_bin");
            text.replace(MysqlColumn::KEY_TYPE, &exact)
        }
    }
}

#[cfg(test)]
mod tests {
    use hapax_model::field::FieldPath;
    use hapax_model::mode::ConflictMode;

    use super::*;

    /// Goal: the suggested table has a key that compares exactly, on both servers. Method: the whole text.
    #[test]
    fn a_suggested_table_compares_its_key_exactly() {
        let mut config = TableConfig::new("sales.orders");
        config.mode = Some(ConflictMode::Newer);
        config.key_fields = vec![FieldPath::of_name("order by")];
        assert_eq!(
            suggested_for(&config, Flavour::MariaDb),
            "CREATE TABLE `sales`.`orders` (\n  `order by` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT \
             NULL,\n  `hapax_version` binary(18),\n  PRIMARY KEY (`order by`)\n) ENGINE = \
             InnoDB DEFAULT CHARACTER SET utf8mb4;"
        );
        assert!(suggested_for(&config, Flavour::Mysql).contains("COLLATE utf8mb4_0900_bin NOT NULL"));
    }
}
