//! The servers that this crate knows, and what differs between them outside their own protocols.

/// A server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
    /// MySQL's own server.
    Mysql,
    /// Apache Kafka.
    Kafka,
}

impl Product {
    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Mysql => "MySQL",
            Self::Kafka => "Apache Kafka",
        }
    }

    /// Its name in paths.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Mysql => "mysql",
            Self::Kafka => "kafka",
        }
    }

    /// What is looked for.
    pub(crate) const fn parts(self) -> &'static str {
        match self {
            Self::Postgres => "the programs postgres and initdb",
            Self::Mariadb => "the program mariadbd and its file mysql_system_tables.sql",
            Self::Mysql => "the program mysqld (of MySQL, not of MariaDB)",
            Self::Kafka => "its jars",
        }
    }

    /// What to do if it is not there.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Postgres => {
                "`apt-get install postgresql` (Debian, Ubuntu), `dnf install postgresql-server` (Fedora), `apk add \
                 postgresql` (Alpine), `brew install postgresql` (macOS); or put the directory that holds both programs \
                 in the PATH"
            }
            Self::Mariadb => {
                "`apt-get install mariadb-server-core` (Debian, Ubuntu; it starts no service), `dnf install \
                 mariadb-server` (Fedora), `apk add mariadb` (Alpine), `brew install mariadb` (macOS); or put the \
                 directory that holds the program in the PATH"
            }
            Self::Mysql => {
                "`dnf install mysql-server` (Fedora), `apt-get install mysql-server-core-8.0` (Ubuntu), `brew install \
                 mysql` (macOS); or put the directory that holds the program in the PATH"
            }
            Self::Kafka => "its jars are fetched by Maven: install maven and a JDK of version 17",
        }
    }

    /// Package managers with the arguments that install it; none for what is never installed.
    pub(crate) const fn packages(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Postgres => &[
                ("apt-get", &["install", "-y", "-q", "--no-install-recommends", LOCK[0], LOCK[1], "postgresql"]),
                ("dnf", &["install", "-y", "-q", "postgresql-server"]),
                ("apk", &["add", "-q", "postgresql"]),
            ],
            Self::Mariadb => &[
                (
                    "apt-get",
                    &["install", "-y", "-q", "--no-install-recommends", LOCK[0], LOCK[1], "mariadb-server-core"],
                ),
                ("dnf", &["install", "-y", "-q", "mariadb-server"]),
                ("apk", &["add", "-q", "mariadb"]),
            ],
            Self::Mysql | Self::Kafka => &[],
        }
    }

    /// The accounts that it may run under when we are root, in this order.
    pub(crate) const fn accounts(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgres", "nobody"],
            Self::Mariadb | Self::Mysql => &["mysql", "nobody"],
            Self::Kafka => &["nobody"],
        }
    }

    /// The signals for [`crate::Stop::Fast`] and [`crate::Stop::Immediate`].
    pub(crate) const fn signals(self) -> [&'static str; 2] {
        match self {
            Self::Postgres => ["INT", "QUIT"],
            // They know no quick end of their own.
            Self::Mariadb | Self::Mysql | Self::Kafka => ["TERM", "KILL"],
        }
    }
}

/// Another installation may be under way: it is waited for.
const LOCK: [&str; 2] = ["-o", "DPkg::Lock::Timeout=300"];
