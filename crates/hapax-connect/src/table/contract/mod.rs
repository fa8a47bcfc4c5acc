//! What every database's sinks keep, beyond the engine's own contract: one function per behaviour, run by the tests of
//! each dialect ([`clauses`]).

pub(crate) mod idempotent;
pub(crate) mod replay;
pub(crate) mod sink;
#[cfg(feature = "sqlite")]
pub(crate) mod state_store;
pub(crate) mod tombstones;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod triggers;
pub(crate) mod values;

/// Makes a test of each clause: `clauses!(sink, Server: a_new_column_is_picked_up, …)`. What a clause needs besides
/// stands in brackets behind its name. The goal and the method of each are said where it is written.
macro_rules! clauses {
    ($area:ident, $database:ty: $($clause:ident $(($($given:expr),+))?),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $clause() {
                crate::table::contract::$area::$clause::<$database>($($($given),+)?).await;
            }
        )+
    };
}
pub(crate) use clauses;
