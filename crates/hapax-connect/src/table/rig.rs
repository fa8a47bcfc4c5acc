//! A table in a test database of its own, and JSON lines delivered into it: for the tests of every dialect.

use hapax_engine::batch::Batch;
use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{Claim, Committed, EpochRecord, SinkError, Target as _, TransactionalSink as _};
use hapax_model::field::FieldPath;
use hapax_model::ledger::Totals;
use hapax_model::mode::ConflictMode;
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};

use super::config::{Deletes, TableConfig};
use super::idempotent::{Foreign, KeyedSink};
use super::sample::{batch, take};
use super::sink::{Home, TableSink};

/// A database of a test's own, in one dialect.
pub(crate) trait Database: Sized {
    /// How sinks ask it.
    type Home: Home<Config: Clone> + Foreign;

    /// The table `t` of a bigint `id`, which is its key, a text `a` that is 'none' by default, and an integer `b`.
    const PLAIN: &'static str;
    /// The types of a binary floating-point number and of JSON.
    const NUMBER_AND_JSON: (&'static str, &'static str);
    /// With this the names of our tables begin.
    const OURS: &'static str;

    /// With this table, and our own unless claims make them.
    async fn new(ddl: &str) -> Self;
    /// With this table and nothing of ours.
    async fn foreign(ddl: &str) -> Self;

    /// Its table `t` as a target.
    fn config(&self) -> Config<Self>;
    /// The table's part.
    fn table(config: &mut Config<Self>) -> &mut TableConfig;
    /// How many rows one statement carries.
    fn rows_per_statement(config: &mut Config<Self>) -> &mut usize;

    /// A sink of the delivery `rig`, over connections of its own.
    fn sink(config: &Config<Self>) -> TableSink<Self::Home>;
    /// A sink for progress that is elsewhere.
    fn keyed_sink(config: Config<Self>) -> KeyedSink<Self::Home>;

    /// Runs statements, as a person would.
    async fn run(&mut self, sql: &str);
    /// The only column of a query, as text.
    async fn texts(&mut self, sql: &str) -> Vec<String>;
}

/// What a workflow says about such a database.
pub(crate) type Config<D> = <<D as Database>::Home as Home>::Config;

pub(crate) struct Rig<D: Database> {
    pub(crate) config: Config<D>,
    pub(crate) sink: TableSink<D::Home>,
    pub(crate) progress: Option<Progress>,
    // Last: a database is dropped after everybody has left it.
    pub(crate) database: D,
}

impl<D: Database> Rig<D> {
    /// A database with the table `t`, and a sink that has claimed.
    pub(crate) async fn new(ddl: &str, configure: impl FnOnce(&mut Config<D>)) -> Self {
        let mut rig = Self::unclaimed(ddl, configure).await;
        rig.claim().await;
        rig
    }

    /// The same, keyed by `id` in this mode.
    pub(crate) async fn keyed(ddl: &str, mode: ConflictMode) -> Self {
        Self::new(ddl, |config| by_id(D::table(config), mode)).await
    }

    pub(crate) async fn unclaimed(ddl: &str, configure: impl FnOnce(&mut Config<D>)) -> Self {
        Self::over(D::new(ddl).await, configure)
    }

    /// In a database that is there.
    pub(crate) fn over(database: D, configure: impl FnOnce(&mut Config<D>)) -> Self {
        let mut config = database.config();
        configure(&mut config);
        Self { sink: D::sink(&config), config, progress: None, database }
    }

    pub(crate) async fn claim(&mut self) {
        self.sink.inspect().await.unwrap();
        self.take().await;
    }

    /// Claims without a look at the table.
    pub(crate) async fn take(&mut self) {
        self.progress = Some(self.sink.init_transactions(&take(0)).await.unwrap());
    }

    /// The inputs as events with the sink's present fields, and `.id` as their key.
    pub(crate) fn batch(&self, inputs: &[&str]) -> Batch {
        let first = self.progress.as_ref().map_or(0, |progress| progress.bookmark.position.offset);
        batch(self.sink.fields(), first, inputs)
    }

    pub(crate) fn record(&self, batch: &Batch) -> EpochRecord {
        record_after(self.progress.as_ref().unwrap(), batch)
    }

    pub(crate) async fn try_deliver(&mut self, batch: Batch) -> Result<Committed, SinkError> {
        let record = self.record(&batch);
        self.sink.begin_transaction(record.epoch)?;
        self.sink.write(batch.into())?;
        let committed = self.sink.commit_transaction(&record).await?;
        self.progress = Some(committed.progress.clone());
        Ok(committed)
    }

    pub(crate) async fn deliver(&mut self, inputs: &[&str]) -> Committed {
        let batch = self.batch(inputs);
        self.try_deliver(batch).await.unwrap()
    }

    /// Takes the delivery back and commits the staged epoch again, which holds these inputs.
    pub(crate) async fn commit_again(&mut self, inputs: &[&str]) -> Result<Committed, SinkError> {
        self.take().await;
        let record = self.record(&self.batch(inputs));
        self.sink.commit_transaction(&record).await
    }

    /// Drops the commit of the inputs in mid-air, and takes the delivery back: nothing of the epoch is there. Returns
    /// the epoch, which is still staged.
    pub(crate) async fn drop_commit(&mut self, inputs: &[&str], after: std::time::Duration) -> EpochRecord {
        let batch = self.batch(inputs);
        let record = self.record(&batch);
        self.sink.begin_transaction(record.epoch).unwrap();
        self.sink.write(batch.into()).unwrap();
        let dropped = tokio::time::timeout(after, self.sink.commit_transaction(&record));
        assert!(dropped.await.is_err(), "the trigger sleeps for longer");
        let generation = self.progress.as_ref().unwrap().generation;
        let claim = Claim::Reclaim { generation, session: "again".into() };
        let found = self.sink.init_transactions(&claim).await.unwrap();
        assert_eq!(found.epoch.0, 0, "what was dropped was rolled back");
        record
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        self.database.run(sql).await;
    }

    /// The only column of a query, as text.
    pub(crate) async fn texts(&mut self, sql: &str) -> Vec<String> {
        self.database.texts(sql).await
    }

    /// The same, of one of our tables, by its name without what all of them begin with.
    pub(crate) async fn ours(&mut self, columns: &str, table: &str) -> Vec<String> {
        self.texts(&format!("SELECT {columns} FROM {}{table}", D::OURS)).await
    }
}

/// The epoch that follows `was`.
pub(crate) fn record_after(was: &Progress, batch: &Batch) -> EpochRecord {
    let (read, dead) = (batch.inputs.len() as u64, batch.letters().len() as u64);
    let mut to = was.bookmark.clone();
    to.position.offset += read;
    EpochRecord {
        epoch: was.epoch.next(),
        from: was.bookmark.clone(),
        to,
        counts: Totals { read, delivered: read - dead, filtered: 0, dead, rows: batch.len() as u64 },
        opened_at_ms: 1,
        closed_at_ms: 2,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        pass: SecondPass::default(),
    }
}

/// Keyed by `id`, in this mode.
pub(crate) fn by_id(table: &mut TableConfig, mode: ConflictMode) {
    table.mode = Some(mode);
    table.key_fields = vec![FieldPath::of_name("id")];
}

/// As the contract of all sinks wants its table in this mode: `id`, `amount`, `seq`, `hapax_deleted`.
pub(crate) fn of_contract(table: &mut TableConfig, mode: ConflictMode) {
    table.mode = Some(mode);
    if mode != ConflictMode::Append {
        table.key_fields = vec![FieldPath::of_name("id")];
    }
    if matches!(mode, ConflictMode::Update | ConflictMode::Newer) {
        table.deletes = Deletes::Some;
    }
    if mode == ConflictMode::Newer {
        table.version_column = Some("seq".into());
    }
}

/// Inputs as [`Rig::deliver`] takes them.
pub(crate) fn strs(inputs: &[String]) -> Vec<&str> {
    inputs.iter().map(String::as_str).collect()
}

/// Runs a future to its end on a thread of its own, for callers that cannot wait.
pub(crate) fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        scope.spawn(move || runtime().block_on(future)).join().unwrap()
    })
}
