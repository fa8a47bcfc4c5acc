//! PostgreSQL, with the state store in the same database.

use std::time::Duration;

use hapax_sql::postgres::tokio_postgres::SimpleQueryMessage;
use hapax_sql::postgres::{Limits, PostgresUrl, Session};

use crate::servers::{self, Server};

/// A server of PostgreSQL.
pub(crate) struct Postgres;

/// A folder and a database of PostgreSQL.
pub(crate) type Shop = servers::Shop<Postgres>;

impl Server for Postgres {
    const KIND: &'static str = "postgres";
    const VARIABLE: &'static str = "HAPAX_TEST_POSTGRES";
    const ORDERS: &'static str = "CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount integer)";
    const LEFT_OF_HAPAX: &'static str = "SELECT count(*) FROM pg_namespace WHERE nspname = 'hapax'";
    const ENDS_SESSIONS: &'static str = "pg_terminate_backend";
    const MAKES_ONE_WAIT: &'static str = "makes 1 other session(s) wait for its locks";

    const DEADLOCKS: &'static str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

    type Session = Session;
    type OwnServer = hapax_services::Postgres;

    fn own_server() -> Self::OwnServer {
        hapax_services::Postgres::builder().start().expect("a server")
    }

    fn address_of(server: &Self::OwnServer) -> String {
        server.url("postgres")
    }

    fn on_each_row(table: &str, statement: &str) -> Vec<String> {
        vec![
            format!(
                "CREATE FUNCTION on_each_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {statement}; RETURN NULL; END $$"
            ),
            format!(
                "CREATE TRIGGER on_each_row AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION on_each_row()"
            ),
        ]
    }

    async fn connect(url: &str) -> Result<Session, String> {
        let url = PostgresUrl::parse(url).expect("an address");
        let limits = Limits { idle_in_transaction: Duration::from_secs(120), ..Limits::default() };
        Session::connect(&url, &limits).await.map_err(|error| error.to_string())
    }

    async fn execute(session: &mut Session, statements: &str) -> Result<(), String> {
        session.client().batch_execute(statements).await.map_err(|error| format!("{error:?}"))
    }

    async fn first(session: &mut Session, query: &str) -> Result<Option<String>, String> {
        let answer = session.client().simple_query(query).await.map_err(|error| format!("{error:?}"))?;
        let value =
            answer.iter().find_map(|part| if let SimpleQueryMessage::Row(row) = part { row.get(0) } else { None });
        Ok(value.map(str::to_owned))
    }

    fn name_of(session: &Session) -> String {
        format!("process {}", session.backend_pid())
    }

    fn made_and_dropped(database: &str) -> [String; 2] {
        [format!("CREATE DATABASE {database}"), format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")]
    }

    fn state_beside(url: &str) -> String {
        url.to_owned()
    }

    fn own(table: &str) -> String {
        format!("hapax.{table}")
    }

    fn in_one_line(expression: &str, key: &str) -> String {
        format!("string_agg({expression}, ' ' ORDER BY {key})")
    }

    fn retyped(column: &str, to: &str) -> String {
        format!("ALTER COLUMN {column} TYPE {to}")
    }

    fn user_made(user: &str) -> String {
        format!("CREATE ROLE {user} LOGIN")
    }

    fn own_granted(user: &str) -> String {
        format!("GRANT ALL ON SCHEMA hapax TO {user}; GRANT ALL ON ALL TABLES IN SCHEMA hapax TO {user}")
    }

    fn user_dropped(user: &str) -> String {
        format!("DROP OWNED BY {user}; DROP ROLE {user}")
    }
}
