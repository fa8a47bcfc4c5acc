//! MariaDB, with the state store in a file.

use std::time::Duration;

use hapax_sql::mysql::{Limits, MysqlUrl, Session};

use crate::servers::{self, Server};

/// A server of MariaDB.
pub(crate) struct Mysql;

/// A folder and a database of MariaDB.
pub(crate) type Shop = servers::Shop<Mysql>;

impl Server for Mysql {
    const KIND: &'static str = "mysql";
    const VARIABLE: &'static str = "HAPAX_TEST_MYSQL";
    const ORDERS: &'static str = "CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(200), amount integer)";
    const LEFT_OF_HAPAX: &'static str =
        "SELECT count(*) - 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
    const ENDS_SESSIONS: &'static str = "KILL";
    const MAKES_ONE_WAIT: &'static str = "makes 1 other transaction(s) wait for its locks";

    const DEADLOCKS: &'static str =
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Innodb_deadlocks'";

    type Session = Session;
    type OwnServer = hapax_services::Mariadb;

    fn own_server() -> Self::OwnServer {
        hapax_services::Mariadb::builder().start().expect("a server")
    }

    fn address_of(server: &Self::OwnServer) -> String {
        server.url("")
    }

    fn on_each_row(table: &str, statement: &str) -> Vec<String> {
        let made = |name: &str, when: &str| format!("CREATE TRIGGER {name} {when} ON {table} FOR EACH ROW {statement}");
        vec![made("on_each_row", "AFTER INSERT"), made("on_each_row_again", "AFTER UPDATE")]
    }

    async fn connect(url: &str) -> Result<Session, String> {
        let url = MysqlUrl::parse(url).expect("an address");
        let limits = Limits { idle_in_transaction: Duration::from_secs(120), ..Limits::default() };
        Session::connect(&url, &limits).await.map_err(|error| error.to_string())
    }

    async fn execute(session: &mut Session, statements: &str) -> Result<(), String> {
        session.text(statements).await.map(drop).map_err(|error| error.to_string())
    }

    async fn first(session: &mut Session, query: &str) -> Result<Option<String>, String> {
        let rows = session.text_rows(query).await.map_err(|error| error.to_string())?;
        let value: Option<Option<String>> = rows.first().and_then(|row| row.get(0));
        Ok(value.flatten())
    }

    fn name_of(session: &Session) -> String {
        format!("KILL {}", session.connection_id())
    }

    fn made_and_dropped(database: &str) -> [String; 2] {
        [format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"), format!("DROP DATABASE IF EXISTS {database}")]
    }

    fn state_beside(_: &str) -> String {
        "sqlite://state.db".to_owned()
    }

    fn own(table: &str) -> String {
        format!("hapax_{table}")
    }

    fn in_one_line(expression: &str, key: &str) -> String {
        format!("group_concat({expression} ORDER BY {key} SEPARATOR ' ')")
    }

    fn retyped(column: &str, to: &str) -> String {
        format!("MODIFY COLUMN {column} {to}")
    }

    fn user_made(user: &str) -> String {
        // Without any right the server does not even let it see the database.
        format!("CREATE USER {user}; CREATE TABLE anything (id int); GRANT SELECT ON anything TO {user}")
    }

    fn own_granted(user: &str) -> String {
        let tables = ["meta", "progress", "epochs", "dead_letters", "adopted"];
        tables.map(|table| format!("GRANT ALL ON hapax_{table} TO {user}")).join("; ")
    }

    fn user_dropped(user: &str) -> String {
        format!("DROP USER {user}")
    }
}
