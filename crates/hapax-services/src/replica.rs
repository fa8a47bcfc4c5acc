//! A MariaDB server that follows another one, and can take its place.
//!
//! Reads: the primary's log of changes, by its GTIDs, from the beginning. Writes: nothing but what it reads, until it is
//! promoted. Not here: MySQL's own server, which has other words for all of this.

use std::time::{Duration, Instant};

use crate::error::{ServiceError, tail};
use crate::launch::PATIENCE;
use crate::mariadb::{Mariadb, MariadbBuilder};
use crate::product::Product;

/// When a primary confirms a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// When the replica has it, and nobody sees it before: what was confirmed or read survives the primary.
    SemiSynchronous,
    /// At once: the replica may lack the last commits.
    Asynchronous,
}

/// For ever, as far as a test is concerned: a primary that stopped waiting would be an asynchronous one.
const WAIT: &str = "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'; \
                    SET GLOBAL rpl_semi_sync_master_timeout = 3600000; SET GLOBAL rpl_semi_sync_master_enabled = 1";
const FOLLOWERS: &str = "SELECT variable_value = 1 FROM information_schema.global_status \
                         WHERE variable_name = 'RPL_SEMI_SYNC_MASTER_CLIENTS'";
const APPLIED: &str = "SELECT COUNT(*) = 0 FROM information_schema.processlist \
                       WHERE command = 'Slave_SQL' AND COALESCE(state, '') NOT LIKE 'Slave has read all relay log%'";

impl MariadbBuilder {
    /// A server that others can follow.
    #[must_use]
    pub fn primary(self) -> Self {
        self.setting("log_bin", "changes").setting("binlog_format", "ROW").setting("server_id", "1")
    }

    /// Starts a server that follows `primary`, has all that it has, and takes writes of nobody but administrators.
    /// [`Mariadb::promote`] ends that.
    ///
    /// # Errors
    /// If it does not start, or cannot follow.
    pub fn start_replica(&self, primary: &Mariadb, replication: Replication) -> Result<Mariadb, ServiceError> {
        let settings = self.clone().setting("server_id", "2").setting("read_only", "1");
        let replica = settings.setting("rpl_semi_sync_slave_enabled", "1").start()?;
        if replication == Replication::SemiSynchronous {
            // Before the replica connects, which asks for it; it is a matter of milliseconds until commits go on.
            primary.query(WAIT)?;
        }
        replica.query(&format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'root', \
             MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1; START SLAVE",
            primary.port()
        ))?;
        replica.catch_up(primary)?;
        if replication == Replication::SemiSynchronous {
            primary.wait_until(FOLLOWERS, "has no replica that confirms what it received")?;
        }
        Ok(replica)
    }
}

impl Mariadb {
    /// Waits until this replica has applied all that `primary` has committed by now.
    ///
    /// # Errors
    /// If it does not get so far.
    pub fn catch_up(&self, primary: &Self) -> Result<(), ServiceError> {
        let answer = primary.query("SELECT @@GLOBAL.gtid_binlog_pos")?;
        let position = answer.value().unwrap_or_default();
        let applied = format!("SELECT MASTER_GTID_WAIT('{position}', 1) = 0");
        self.wait_until(&applied, &format!("did not apply what its primary has, up to {position}"))
    }

    /// Follows nobody any more, and stays read-only: what its primary commits from now on is not here.
    ///
    /// # Errors
    /// What the server says.
    pub fn stop_following(&self) -> Result<(), ServiceError> {
        self.query("STOP SLAVE").map(drop)
    }

    /// Makes a replica writable, with all that it has received.
    ///
    /// # Errors
    /// What the server says, or that it does not apply what it has.
    pub fn promote(&self) -> Result<(), ServiceError> {
        self.query("STOP SLAVE IO_THREAD")?;
        self.wait_until(APPLIED, "did not apply what it had received")?;
        self.query("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0").map(drop)
    }

    /// Asks until the answer is 1.
    fn wait_until(&self, question: &str, else_it: &str) -> Result<(), ServiceError> {
        let started = Instant::now();
        while self.query(question)?.value() != Some("1") {
            if started.elapsed() > PATIENCE {
                let (what, log) = (else_it.to_owned(), tail(&self.log()));
                return Err(ServiceError::NoAnswer { product: Product::Mariadb, port: self.port(), what, log });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holder::Stop;
    use crate::mysql_client::MysqlClient;

    fn quick() -> MariadbBuilder {
        let small = Mariadb::builder().without_sync().setting("innodb_log_file_size", "10M");
        small.setting("innodb_buffer_pool_size", "16M")
    }

    fn rows(server: &Mariadb) -> Option<String> {
        let answer = server.query("SELECT COUNT(*) FROM mine.kept").expect("it answers");
        answer.value().map(str::to_owned)
    }

    /// Goal: what a primary confirmed is in its replica, which refuses writes until it is promoted. Method: rows before and
    /// after it follows, the primary killed right after a commit, an account without rights.
    #[test]
    fn a_replica_has_what_was_confirmed_and_takes_over() {
        let mut primary = quick().primary().start().expect("it starts");
        primary.query("CREATE USER w@'127.0.0.1'; GRANT ALL ON mine.* TO w@'127.0.0.1'").expect("an account");
        primary.query("CREATE DATABASE mine; CREATE TABLE mine.kept (a int)").expect("it writes");
        let replica = quick().start_replica(&primary, Replication::SemiSynchronous).expect("it follows");
        primary.query("INSERT INTO mine.kept VALUES (1), (2)").expect("it writes");
        primary.stop(Stop::Immediate);
        let mut writer = MysqlClient::connect_as(replica.port(), "w", "mine").expect("it connects");
        let refused = writer.query("INSERT INTO kept VALUES (3)").expect_err("it is read-only");
        assert_eq!(refused.code(), Some("1290"));
        replica.promote().expect("it takes over");
        assert_eq!(rows(&replica).as_deref(), Some("2"));
        writer.query("INSERT INTO kept VALUES (3)").expect("it takes writes");
        assert_eq!(rows(&replica).as_deref(), Some("3"));
    }

    /// Goal: a replica that stopped following lacks what came after. Method: a row before, a row after, both counted.
    #[test]
    fn a_replica_that_stopped_following_is_behind() {
        let primary = quick().primary().start().expect("it starts");
        let replica = quick().start_replica(&primary, Replication::Asynchronous).expect("it follows");
        primary
            .query("CREATE DATABASE mine; CREATE TABLE mine.kept (a int); INSERT INTO mine.kept VALUES (1)")
            .expect("writes");
        replica.catch_up(&primary).expect("it catches up");
        replica.stop_following().expect("it stops");
        primary.query("INSERT INTO mine.kept VALUES (2)").expect("it writes");
        replica.promote().expect("it takes over");
        assert_eq!((rows(&primary).as_deref(), rows(&replica).as_deref()), (Some("2"), Some("1")));
    }
}
