//! Which server it is: MySQL or MariaDB, and its version. What they do differently is asked here, not by comparing texts.

use std::fmt;

/// Whose server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MySQL, and Percona's and others' builds of it.
    Mysql,
    /// MariaDB.
    MariaDb,
}

/// A server's flavour and version. `Display` is for people: `MariaDB 10.11.14`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    /// Whose it is.
    pub flavour: Flavour,
    /// Major, minor and patch.
    pub version: (u16, u16, u16),
}

impl Server {
    /// Reads `@@version`: `8.0.36`, `10.11.14-MariaDB-0+deb12u2`, also with the prefix `5.5.5-` of old protocols.
    #[must_use]
    pub fn parse(version: &str) -> Option<Self> {
        let maria = version.to_ascii_lowercase().contains("mariadb");
        let text = if maria { version.strip_prefix("5.5.5-").unwrap_or(version) } else { version };
        let numbers = text.split(|character: char| !character.is_ascii_digit() && character != '.').next()?;
        let mut parts = numbers.split('.').map(|part| part.parse().ok());
        let version = (parts.next()??, parts.next().flatten().unwrap_or(0), parts.next().flatten().unwrap_or(0));
        Some(Self { flavour: if maria { Flavour::MariaDb } else { Flavour::Mysql }, version })
    }

    /// Whether `INSERT … VALUES … AS new ON DUPLICATE KEY UPDATE c = new.c` is understood, and `VALUES(c)` deprecated:
    /// MySQL since 8.0.20. MariaDB knows only `VALUES(c)`.
    #[must_use]
    pub fn has_row_alias(self) -> bool {
        self.flavour == Flavour::Mysql && self.version >= (8, 0, 20)
    }

    /// Whether an idle transaction has a time limit of its own (MariaDB since 10.3); else the idle session has one.
    #[must_use]
    pub fn limits_idle_transactions(self) -> bool {
        self.flavour == Flavour::MariaDb && self.version >= (10, 3, 0)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.flavour {
            Flavour::Mysql => "MySQL",
            Flavour::MariaDb => "MariaDB",
        };
        let (major, minor, patch) = self.version;
        write!(formatter, "{name} {major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: flavour, version and what follows from them. Method: versions as servers print them.
    #[test]
    fn a_server_is_known_by_its_version() {
        for (text, shown, alias, idle) in [
            ("10.11.14-MariaDB-0+deb12u2", "MariaDB 10.11.14", false, true),
            ("5.5.5-10.2.44-MariaDB-log", "MariaDB 10.2.44", false, false),
            ("11.8.2-MariaDB", "MariaDB 11.8.2", false, true),
            ("8.0.19", "MySQL 8.0.19", false, false),
            ("8.0.20", "MySQL 8.0.20", true, false),
            ("8.4.3-3", "MySQL 8.4.3", true, false),
            ("9", "MySQL 9.0.0", true, false),
        ] {
            let server = Server::parse(text).unwrap();
            assert_eq!(server.to_string(), shown, "{text}");
            assert_eq!((server.has_row_alias(), server.limits_idle_transactions()), (alias, idle), "{text}");
        }
        assert_eq!(Server::parse("none"), None);
    }
}
