//! A MariaDB server of one's own: a fresh data directory in a scratch directory, on a free port of loopback.
//! MySQL's own server differs in how its first tables are made, and in a few settings.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::client::Answer;
use crate::error::{Doing, ServiceError};
use crate::find_mariadb::{MariadbPrograms, find_mariadb, find_mysql};
use crate::holder::{Holder, Stop, clean};
use crate::launch::{PATIENCE, on_a_port, run, wait_until_it_answers};
use crate::mysql_client::MysqlClient;
use crate::product::Product;
use crate::scratch::Scratch;

/// What makes the tables of the database `mysql`, in this order. The help texts and the views of `sys` are left out.
const TABLES: [&str; 3] = ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];
/// MySQL makes its tables itself, and `root` for a socket only.
const ROOT: &str = "CREATE USER root@'127.0.0.1' IDENTIFIED BY '';\n\
                    GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";
const SETTINGS: &str = "[mysqld]\nskip-name-resolve\ncharacter-set-server = utf8mb4\n\
                        collation-server = utf8mb4_general_ci\n";

/// What a server is to be like.
#[derive(Debug, Clone)]
pub struct MariadbBuilder {
    product: Product,
    lines: Vec<String>,
    files: Vec<(&'static str, PathBuf)>,
    data: Option<PathBuf>,
    port: Option<u16>,
}

impl MariadbBuilder {
    /// One setting, as `my.cnf` names it: `max_connections`, `max_allowed_packet`, `read_only`, `performance_schema`,
    /// `innodb_log_file_size`.
    #[must_use]
    pub fn setting(self, name: &str, value: &str) -> Self {
        self.line(&format!("{name} = {value}"))
    }

    /// A line of `my.cnf` as it stands.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// Nothing waits for the disk: a server that is killed leaves what it wrote to the system, a power cut does not.
    #[must_use]
    pub fn without_sync(self) -> Self {
        match self.product {
            Product::Mysql => self.setting("innodb_flush_method", "nosync"),
            Product::Mariadb | Product::Postgres | Product::Kafka => self.line("debug-no-sync"),
        }
    }

    /// TLS with this certificate and key.
    #[must_use]
    pub fn tls(mut self, certificate: &Path, key: &Path) -> Self {
        self.files.extend([("server.crt", certificate.to_owned()), ("server.key", key.to_owned())]);
        self
    }

    /// The authority that client certificates must be signed by.
    #[must_use]
    pub fn tls_authority(mut self, certificate: &Path) -> Self {
        self.files.push(("authority.crt", certificate.to_owned()));
        self
    }

    /// The data directory, which must not be there yet: one on a small disk, say. Without it, one of its own.
    #[must_use]
    pub fn data_in(mut self, directory: &Path) -> Self {
        self.data = Some(directory.to_owned());
        self
    }

    /// This port and no other; without it, a free one.
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Makes the data directory and starts the server; returns when it answers.
    ///
    /// # Errors
    /// If there is no MariaDB here, or it does not start; the message says what was tried.
    pub fn start(&self) -> Result<Mariadb, ServiceError> {
        let product = self.product;
        let programs = if product == Product::Mysql { find_mysql() } else { find_mariadb() }?;
        let account = Account::of(product)?;
        let scratch = Scratch::create(product, account.as_ref())?;
        let data = self.data.clone().unwrap_or_else(|| scratch.path().join("data"));
        let mut server = Mariadb { product, programs, account, scratch, data, port: 0, holder: None };
        self.configure(&server)?;
        server.bootstrap()?;
        on_a_port(self.port, |port| {
            server.port = port;
            server.launch()
        })?;
        Ok(server)
    }

    fn configure(&self, server: &Mariadb) -> Result<(), ServiceError> {
        let mut text = SETTINGS.to_owned();
        for (name, from) in &self.files {
            let to = server.directory().join(name);
            std::fs::copy(from, &to).doing(|| format!("copy {}", from.display()))?;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&to, mode).doing(|| format!("close {}", to.display()))?;
            server.give(&to)?;
            let setting = match *name {
                "server.crt" => "ssl-cert",
                "server.key" => "ssl-key",
                _ => "ssl-ca",
            };
            writeln!(text, "{setting} = {}", to.display()).expect("a string takes text");
        }
        for line in &self.lines {
            writeln!(text, "{line}").expect("a string takes text");
        }
        let path = server.settings();
        std::fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
        std::fs::create_dir(&server.data).doing(|| format!("create {}", server.data.display()))?;
        server.give(&server.data)
    }
}

/// A server; dropping it stops it and removes its directory.
#[derive(Debug)]
pub struct Mariadb {
    product: Product,
    programs: MariadbPrograms,
    account: Option<Account>,
    scratch: Scratch,
    data: PathBuf,
    port: u16,
    holder: Option<Holder>,
}

impl Mariadb {
    /// A server with MariaDB's own settings, without a wish.
    #[must_use]
    pub const fn builder() -> MariadbBuilder {
        MariadbBuilder { product: Product::Mariadb, lines: Vec::new(), files: Vec::new(), data: None, port: None }
    }

    /// The same with MySQL's own server, which not every machine has: its [`MariadbBuilder::start`] may well fail.
    #[must_use]
    pub fn mysql() -> MariadbBuilder {
        let builder = MariadbBuilder { product: Product::Mysql, ..Self::builder() };
        // Its second protocol wants a port of its own, its log of changes much disk.
        builder.line("skip-mysqlx").line("skip-log-bin").setting("secure_file_priv", "NULL")
    }

    /// The URL of a database, for `root`, who has no password; of the server alone if the name is empty.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let slash = if database.is_empty() { "" } else { "/" };
        format!("mysql://root@127.0.0.1:{}{slash}{database}", self.port)
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory().join("socket")
    }

    /// The directory that holds its settings, its log and its socket.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// Where its programs are.
    #[must_use]
    pub const fn programs(&self) -> &MariadbPrograms {
        &self.programs
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        std::fs::read_to_string(self.directory().join("pid")).ok()?.trim().parse().ok()
    }

    /// A connection to `database`; to none if the name is empty.
    ///
    /// # Errors
    /// If the server is not there, or refuses.
    pub fn connect(&self, database: &str) -> Result<MysqlClient, ServiceError> {
        MysqlClient::connect(self.port, database)
    }

    /// Runs SQL on a connection of its own.
    ///
    /// # Errors
    /// What the server says.
    pub fn query(&self, sql: &str) -> Result<Answer, ServiceError> {
        self.connect("")?.query(sql)
    }

    /// Adds a line to its settings; it counts from the next start on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_line(&self, line: &str) -> Result<(), ServiceError> {
        let path = self.settings();
        let mut text = std::fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        writeln!(text, "{line}").expect("a string takes text");
        std::fs::write(&path, text).doing(|| format!("write {}", path.display()))
    }

    /// Gives a file or folder to the account that the server runs under.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give(&self, path: &Path) -> Result<(), ServiceError> {
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }

    /// A command that runs under the server's account, in its directory.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        clean(Path::new(program), self.directory(), self.account.as_ref())
    }

    /// Stops it and waits for its end. The directory stays.
    pub fn stop(&mut self, stop: Stop) {
        if let Some(holder) = &mut self.holder {
            holder.stop(stop, PATIENCE);
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> Result<(), ServiceError> {
        self.stop(Stop::Fast);
        self.launch()
    }

    fn settings(&self) -> PathBuf {
        self.directory().join("my.cnf")
    }

    /// The server's command line, without what only a server that listens needs.
    fn program(&self) -> Command {
        let words = self.programs.command();
        let mut server = clean(Path::new(&words[0]), self.directory(), self.account.as_ref());
        let share = self.programs.share();
        server.args(&words[1..]).arg(format!("--defaults-file={}", self.settings().display()));
        server.arg(format!("--datadir={}", self.data.display()));
        server.arg(format!("--lc-messages-dir={}", share.display()));
        server.arg(format!("--character-sets-dir={}", share.join("charsets").display()));
        server.arg(format!("--tmpdir={}", self.directory().display()));
        server
    }

    /// Makes the system's tables. By the server itself: `mariadb-install-db` needs programs of further packages.
    fn bootstrap(&self) -> Result<(), ServiceError> {
        let path = self.directory().join("tables.sql");
        let write = |sql: &str| std::fs::write(&path, sql).doing(|| format!("write {}", path.display()));
        let mut server = self.program();
        if self.product == Product::Mysql {
            write(ROOT)?;
            return run(server.arg("--initialize-insecure").arg(format!("--init-file={}", path.display())));
        }
        let mut sql = "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n".to_owned();
        for name in TABLES {
            let path = self.programs.share().join(name);
            sql += &std::fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        }
        write(&sql)?;
        let input = std::fs::File::open(&path).doing(|| format!("read {}", path.display()))?;
        server.args(["--bootstrap", "--silent-startup", "--log-warnings=0", "--max-allowed-packet=8M"]);
        run(server.stdin(Stdio::from(input)))
    }

    fn launch(&mut self) -> Result<(), ServiceError> {
        if let Some(before) = self.holder.take() {
            before.release();
        }
        let mut server = self.program();
        server.args([
            format!("--port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--socket={}", self.socket().display()),
            format!("--pid-file={}", self.directory().join("pid").display()),
        ]);
        let mut holder = Holder::start(self.product, &server, self.directory(), self.account.as_ref())?;
        let up = wait_until_it_answers(self.product, self.port, &self.log(), &mut holder, || self.is_ours());
        self.holder = Some(holder);
        up
    }

    /// Whether what answers on the port is this server and not one that took the port before it.
    fn is_ours(&self) -> bool {
        let answer = self.query("SELECT @@datadir");
        let directory = answer.ok().and_then(|answer| Some(PathBuf::from(answer.value()?)));
        let real = |path: &Path| path.canonicalize().ok();
        directory.is_some_and(|directory| real(&directory).is_some() && real(&directory) == real(&self.data))
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            holder.stop(Stop::Immediate, PATIENCE);
            holder.release();
        }
    }
}

#[cfg(test)]
#[path = "mariadb_tests.rs"]
mod tests;
