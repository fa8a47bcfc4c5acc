//! What an error of a database means for the one who sent the statement. One list for every driver.

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultClass {
    /// The row is to blame: its value, a constraint, a limit, a trigger that refuses it.
    Row,
    /// Nobody is to blame: roll back and send the same again, with jitter.
    Again,
    /// The session or the server is gone or exhausted: close, connect again; in doubt if it came at COMMIT.
    Reconnect,
    /// The statement does not fit the database: forget the prepared statements, read the schema once more, then stop.
    Schema,
    /// Not allowed, or not known to the server: stop.
    Denied,
    /// The server takes no writes, as after a failover: connect again, perhaps to another.
    ReadOnly,
}
