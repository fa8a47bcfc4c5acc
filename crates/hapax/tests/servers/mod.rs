//! The real program against a real database server, each test in a database of its own: what must hold on every server
//! is written once here, over [`Server`], and runs on each of them; what is one server's own is in `mysql/`, `postgres/`.

mod bad_rows;
mod bad_servers;
mod bad_tables;
mod check_and_run;
mod files;
mod init;
mod lanes;
mod letters;
mod life;
mod looking;
mod shop;
mod workers;

pub(crate) use bad_rows::bad_values_become_dead_letters;
pub(crate) use bad_tables::unfit_tables_are_refused_with_the_cure;
pub(crate) use shop::{Client, Shop};

/// A kind of database server: how to talk to it, and what it says in words of its own.
pub(crate) trait Server: Sized {
    /// The scheme of its addresses, and the name of its sink.
    const KIND: &'static str;
    /// The environment variable with the test server's address.
    const VARIABLE: &'static str;
    /// Makes table `orders (id, customer, amount)`.
    const ORDERS: &'static str;
    /// How many things of Hapax's own are in the database.
    const LEFT_OF_HAPAX: &'static str;
    /// What ends another's session.
    const ENDS_SESSIONS: &'static str;
    /// What is said of whoever makes one other wait.
    const MAKES_ONE_WAIT: &'static str;
    /// How many transactions the server has ended because two waited for each other.
    const DEADLOCKS: &'static str;

    /// A session of the test's own.
    type Session;
    /// A server of a test's own; it ends when it is dropped.
    type OwnServer;

    /// Starts a server of the test's own.
    fn own_server() -> Self::OwnServer;
    /// Its address.
    fn address_of(server: &Self::OwnServer) -> String;
    /// Statements that make the trigger `on_each_row`, which runs a statement for each row that is written.
    fn on_each_row(table: &str, statement: &str) -> Vec<String>;

    /// Opens a session, which may rest in a transaction.
    async fn connect(url: &str) -> Result<Self::Session, String>;
    /// Runs statements.
    async fn execute(session: &mut Self::Session, statements: &str) -> Result<(), String>;
    /// One value, as text; none for NULL and for no row.
    async fn first(session: &mut Self::Session, query: &str) -> Result<Option<String>, String>;
    /// How `hapax stuck` names a session.
    fn name_of(session: &Self::Session) -> String;

    /// Statements that make a database, and drop it.
    fn made_and_dropped(database: &str) -> [String; 2];
    /// Where the state store is, beside a target at `url`.
    fn state_beside(url: &str) -> String;
    /// One of Hapax's own tables.
    fn own(table: &str) -> String;
    /// The values of an expression in the order of a key, with blanks between, as one expression.
    fn in_one_line(expression: &str, key: &str) -> String;
    /// The clause of an ALTER TABLE that gives a column another type.
    fn retyped(column: &str, to: &str) -> String;
    /// Statements that make a user who may log in and see the database, and no more.
    fn user_made(user: &str) -> String;
    /// Statements that let a user write into Hapax's own tables.
    fn own_granted(user: &str) -> String;
    /// Statements that drop a user.
    fn user_dropped(user: &str) -> String;
}

/// Each behaviour as a test on each server.
macro_rules! on_every_server {
    ($($behaviour:ident),+ $(,)?) => {
        #[cfg(feature = "mysql")]
        mod mysql {
            $(#[test] fn $behaviour() { super::$behaviour::<crate::mysql::world::Mysql>(); })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test] fn $behaviour() { super::$behaviour::<crate::postgres::world::Postgres>(); })+
        }
    };
}
pub(crate) use on_every_server;
