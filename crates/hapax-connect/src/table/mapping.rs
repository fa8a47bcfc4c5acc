//! Which field feeds which column, and whether the live table is fit for what the workflow asks of it.
//!
//! Reads: the configuration and the live table. Writes: nothing.
//! Not here: where a field lies in a batch (`rows`), since a batch may be older than the table's newest column.

use hapax_model::field::FieldPath;
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::nearest::nearest;

use super::column::LiveColumn;
use super::config::{Deletes, TableConfig};
use super::ddl;
use super::live::{DeferredKey, LiveTable, LookedAt, SilentDrop};

/// The table is not there.
pub const NO_TABLE: &str = "HX4110";
/// There is something else under the table's name.
pub const NO_PLAIN_TABLE: &str = "HX4111";
/// No unique index lies over exactly the key's columns.
pub const NO_UNIQUE_INDEX: &str = "HX4112";
/// A column of the key may be NULL, or cannot hold the key.
pub const KEY_COLUMN_UNFIT: &str = "HX4113";
/// A column that the configuration names is not there.
pub const NO_COLUMN: &str = "HX4114";
/// A column must have a value and gets none.
pub const UNFED_COLUMN: &str = "HX4115";
/// Mode `newer` finds no column that says which row is newer.
pub const NO_VERSION: &str = "HX4116";
/// Deletes cannot be written in this mode.
pub const NO_DELETES: &str = "HX4117";
/// A foreign key is only checked at COMMIT.
pub const DEFERRED_KEY: &str = "HX4118";

/// The column that mode `newer` compares when no other is named.
pub const VERSION_COLUMN: &str = "hapax_version";
/// The column that marks a removed row in mode `newer`.
pub const DELETED_COLUMN: &str = "hapax_deleted";

/// What feeds a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// An event's field, by its place in [`Mapping::fields`].
    Field(usize),
    /// The key: the event key in `ignore`, else the entity key.
    Key,
    /// The event's place in its lane, in an order that databases compare.
    Version,
    /// Whether the row was removed.
    Deleted,
}

/// A column that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedColumn<C> {
    /// The column.
    pub live: C,
    /// What feeds it.
    pub feed: Feed,
}

/// How a table is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<C> {
    /// The table's name.
    pub table: String,
    /// What happens to a key that is already there.
    pub mode: ConflictMode,
    /// Why it is this mode, for people.
    pub why: String,
    /// The fields of an event that feed columns.
    pub fields: Vec<FieldPath>,
    /// The columns that are written, in the table's order.
    pub columns: Vec<FedColumn<C>>,
    /// Which of `columns` are the key; empty in `append`.
    pub key: Vec<usize>,
    /// Which of `columns` says which row is newer; only in `newer`.
    pub version: Option<usize>,
    /// Columns that were filled and are not there any more, each with its field, which no column takes now. The fields
    /// are still among `fields`: an event that has one must not lose it silently ([`Rows::refuse_gone`]).
    ///
    /// [`Rows::refuse_gone`]: super::rows::Rows::refuse_gone
    pub gone: Vec<(String, FieldPath)>,
    /// In which order rows are written.
    pub order: WriteOrder,
    /// Whether a trigger of the table can leave out a row without a word.
    pub silent_drop: SilentDrop,
}

/// In which order rows are written, so that where an epoch is cut does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOrder {
    /// As suits the table: a row meets only that of its key, so events of one key can be reduced, and keys sorted.
    AnyOrder,
    /// As in the lane, nothing left out, and one lane at a time.
    LaneOrder {
        /// When the database looks at what makes the order show.
        looked_at: LookedAt,
        /// What that is, for people.
        why: String,
    },
}

impl WriteOrder {
    fn of<C: LiveColumn>(mode: ConflictMode, key: &[&str], live: &LiveTable<C>) -> Self {
        let over_key = |columns: &[String]| {
            columns.len() == key.len() && columns.iter().all(|column| key.iter().any(|name| C::same_name(name, column)))
        };
        let others = live.unique.iter().filter(|index| mode != ConflictMode::Append && !over_key(&index.columns));
        let mut why: Vec<String> = others.map(|index| format!("the unique index \"{}\"", index.name)).collect();
        why.extend(live.order_shows.iter().map(|rule| rule.what.clone()));
        if why.is_empty() {
            return Self::AnyOrder;
        }
        let late = live.order_shows.iter().any(|rule| rule.looked_at == LookedAt::StatementEnd);
        let looked_at = if late { LookedAt::StatementEnd } else { LookedAt::EachRow };
        Self::LaneOrder { looked_at, why: why.join(", ") }
    }

    /// Whether every row must be a statement of its own.
    #[must_use]
    pub fn wants_rows_alone(&self) -> bool {
        matches!(self, Self::LaneOrder { looked_at: LookedAt::StatementEnd, .. })
    }

    /// What `check` says about it, if there is something to say.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self {
            Self::AnyOrder => None,
            Self::LaneOrder { why, .. } => Some(format!(
                "rows are written in lane order, none left out, and one lane at a time: because of {why} a row may meet \
                 others than that of its key, and where an epoch is cut must not show"
            )),
        }
    }
}

/// Why a table is not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The code of the page that explains it.
    pub code: &'static str,
    /// What is wrong, and the cure.
    pub message: String,
}

fn unfit(code: &'static str, message: impl Into<String>) -> Unfit {
    Unfit { code, message: message.into() }
}

impl<C: LiveColumn> Mapping<C> {
    /// Resolves the configuration against the live table.
    ///
    /// # Errors
    /// The first reason for which the table is not fit.
    pub fn resolve(config: &TableConfig, live: &LiveTable<C>) -> Result<Self, Unfit> {
        let (mode, why) = mode(config, live);
        check_deferred(config, live, mode)?;
        check_named(config, live)?;
        let mut fields = Vec::new();
        let columns = feed_columns(config, live, mode, &mut fields)?;
        let mut mapping = Self {
            table: live.name.clone(),
            mode,
            why,
            fields,
            columns,
            key: Vec::new(),
            version: None,
            gone: Vec::new(),
            order: WriteOrder::AnyOrder,
            silent_drop: SilentDrop::Impossible,
        };
        if mode != ConflictMode::Append {
            mapping.key = mapping.key_columns(config, live)?;
            mapping.check_key(live)?;
        }
        if mode == ConflictMode::Newer {
            mapping.version = Some(mapping.version_column(config)?);
        }
        mapping.check_deletes(config)?;
        let key: Vec<&str> = mapping.key.iter().map(|at| mapping.columns[*at].live.name()).collect();
        mapping.order = WriteOrder::of(mode, &key, live);
        if live.order_shows.iter().any(|rule| rule.silent_drop == SilentDrop::Possible) {
            mapping.silent_drop = SilentDrop::Possible;
        }
        Ok(mapping)
    }

    /// Whether a row may leave column `at` to its default, or as it is. The key cannot be left out, nor a column that must
    /// have a value and has no default.
    #[must_use]
    pub fn may_be_left_out(&self, at: usize) -> bool {
        let column = &self.columns[at];
        matches!(column.feed, Feed::Field(_))
            && (column.live.fills_itself() || !column.live.required())
            && !self.key.contains(&at)
    }

    /// Whether a tombstone sets column `at` to NULL, so that an event which brings the row back without it finds what it
    /// finds in a new row, wherever an epoch was cut. What fills itself stays: a number that others refer to is not drawn
    /// anew. A column that must have a value stays too: no event can leave it out.
    #[must_use]
    pub fn is_cleared(&self, at: usize) -> bool {
        self.may_be_left_out(at) && !self.columns[at].live.fills_itself() && self.version != Some(at)
    }

    /// Whether a tombstone leaves a column of the row as it was: which event filled it last then shows, so the rows below it
    /// are needed.
    #[must_use]
    pub fn tombstone_keeps(&self) -> bool {
        let is_written = |at: usize| {
            self.key.contains(&at)
                || self.version == Some(at)
                || self.columns[at].feed == Feed::Deleted
                || self.is_cleared(at)
        };
        !(0..self.columns.len()).all(is_written)
    }

    /// All that decides which row an event becomes, and whether it fits: a text that differs where that may differ.
    #[must_use]
    pub fn rules(&self) -> String {
        format!("{:?}", (&self.table, self.mode, &self.fields, &self.columns, &self.key, self.version))
    }

    /// Takes over what was known of the table before it changed: which columns are gone, whose fields events may still
    /// have.
    pub fn remember(&mut self, was: &Self) {
        let filled = was.columns.iter().filter_map(|column| match column.feed {
            Feed::Field(at) => Some((column.live.name().to_owned(), was.fields[at].clone())),
            Feed::Key | Feed::Version | Feed::Deleted => None,
        });
        for (column, field) in filled.chain(was.gone.iter().cloned()) {
            if !self.fields.contains(&field) {
                self.fields.push(field.clone());
                self.gone.push((column, field));
            }
        }
    }

    /// The column that is written from `name`'s own feed.
    fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.live.is_named(name))
    }

    fn key_columns(&self, config: &TableConfig, live: &LiveTable<C>) -> Result<Vec<usize>, Unfit> {
        let mode = self.mode.name();
        if let Some(name) = &config.key_column {
            return Ok(self.position(name).into_iter().collect());
        }
        let fed_by = |path: &FieldPath| {
            let slot = self.fields.iter().position(|field| field == path);
            self.columns.iter().position(|column| slot.is_some_and(|slot| column.feed == Feed::Field(slot)))
        };
        if !config.key_fields.is_empty() {
            let found = config.key_fields.iter().map(|path| {
                fed_by(path).ok_or_else(|| {
                    let known = live.columns.iter().map(LiveColumn::name);
                    let meant = match nearest(&path.names().join("."), known) {
                        Some(name) => format!("the table has \"{name}\": did you mean keyFields: [{name}]? Else "),
                        None => String::new(),
                    };
                    unfit(
                        NO_COLUMN,
                        format!(
                            "no column takes the key field {path}, and onConflict is {mode}; {meant}map a column to it under \
                             columns, or name a keyColumn for the key's hash"
                        ),
                    )
                })
            });
            return found.collect();
        }
        if live.primary_key.is_empty() {
            let message = format!(
                "onConflict is {mode}, but neither keyFields nor a keyColumn is given and the table has no primary \
                 key; name the key, or write onConflict: append"
            );
            return Err(unfit(NO_UNIQUE_INDEX, message));
        }
        Ok(live.primary_key.iter().filter_map(|name| self.position(name)).collect())
    }

    fn check_key(&self, live: &LiveTable<C>) -> Result<(), Unfit> {
        let names: Vec<&str> = self.key.iter().map(|at| self.columns[*at].live.name()).collect();
        let over_key = |columns: &[String]| {
            columns.len() == names.len()
                && columns.iter().all(|column| names.iter().any(|name| C::same_name(name, column)))
        };
        let (list, mode) = (listed(&names), self.mode.name());
        let mut candidates = live.unique.iter().filter(|index| over_key(&index.columns)).peekable();
        if candidates.peek().is_none() {
            let message = format!(
                "onConflict is {mode}, which needs a unique index over exactly {list}; make it with: {}, or write \
                 onConflict: append",
                ddl::unique_index::<C>(&self.table, &names)
            );
            return Err(unfit(NO_UNIQUE_INDEX, message));
        }
        let mut flaws = candidates.map(|index| index.flaw.as_deref());
        if let Some(flaw) = flaws.try_fold("", |_, flaw| flaw) {
            let message = format!(
                "onConflict is {mode}, but {flaw}; make a plain unique index: {}",
                ddl::unique_index::<C>(&self.table, &names)
            );
            return Err(unfit(NO_UNIQUE_INDEX, message));
        }
        for at in &self.key {
            let column = &self.columns[*at];
            if !column.live.required() {
                let message = format!(
                    "column \"{}\" is part of the key and may be NULL, and NULL equals nothing, so its rows would be \
                     doubled; declare it NOT NULL",
                    column.live.name()
                );
                return Err(unfit(KEY_COLUMN_UNFIT, message));
            }
            if column.feed == Feed::Key && !column.live.holds_hash() {
                let message = format!(
                    "keyColumn \"{}\" is declared {}; the key's hash needs {}",
                    column.live.name(),
                    column.live.declared(),
                    C::HASH_TYPES
                );
                return Err(unfit(KEY_COLUMN_UNFIT, message));
            }
            if let Some(flaw) = column.live.key_flaw() {
                return Err(unfit(KEY_COLUMN_UNFIT, flaw));
            }
        }
        Ok(())
    }

    fn version_column(&self, config: &TableConfig) -> Result<usize, Unfit> {
        if let Some(name) = &config.version_column {
            // Whether it is there was checked with the other names.
            let found = self.position(name).filter(|at| !self.key.contains(at));
            let message = format!("versionColumn \"{name}\" is part of the key and never changes; name another");
            let at = found.ok_or_else(|| unfit(NO_VERSION, message))?;
            return self.columns[at].live.version_flaw().map_or(Ok(at), |flaw| Err(unfit(NO_VERSION, flaw)));
        }
        if config.progress == ProgressPlace::State {
            let message = "onConflict is newer and progress is in the state store, where a row's version must come from \
                           the event; name a versionColumn that an event field feeds";
            return Err(unfit(NO_VERSION, message));
        }
        let found = self.columns.iter().position(|column| column.feed == Feed::Version);
        let Some(at) = found else {
            let message = format!(
                "onConflict is newer, but the table has no column that says which row is newer; name a versionColumn \
                 that an event field feeds, or add ours with: {}",
                ddl::add_column::<C>(&self.table, VERSION_COLUMN, C::POSITION_TYPE)
            );
            return Err(unfit(NO_VERSION, message));
        };
        let column = &self.columns[at].live;
        if column.holds_version() {
            return Ok(at);
        }
        let (declared, wanted) = (column.declared(), C::POSITION_TYPE);
        let message = format!("column \"{VERSION_COLUMN}\" is declared {declared}; declare it {wanted}");
        Err(unfit(NO_VERSION, message))
    }

    fn check_deletes(&self, config: &TableConfig) -> Result<(), Unfit> {
        if config.deletes == Deletes::Never {
            return Ok(());
        }
        match self.mode {
            ConflictMode::Append | ConflictMode::Ignore => {
                let message = format!(
                    "deleteWhen is given, but onConflict is {}, which only adds rows; write onConflict: update (the \
                     row is removed) or newer (it becomes a tombstone)",
                    self.mode.name()
                );
                Err(unfit(NO_DELETES, message))
            }
            ConflictMode::Newer if self.columns.iter().all(|column| column.feed != Feed::Deleted) => {
                let message = format!(
                    "deleteWhen is given and onConflict is newer, where a removed row stays as a tombstone; add the \
                     column with: {}",
                    ddl::add_column::<C>(&self.table, DELETED_COLUMN, C::DELETED_TYPE)
                );
                Err(unfit(NO_DELETES, message))
            }
            ConflictMode::Newer | ConflictMode::Update => Ok(()),
        }
    }
}

/// The mode, and why it is this one.
fn mode<C: LiveColumn>(config: &TableConfig, live: &LiveTable<C>) -> (ConflictMode, String) {
    if let Some(mode) = config.mode {
        return (mode, "as configured".to_owned());
    }
    if let Some(name) = &config.key_column {
        return (ConflictMode::Update, format!("because keyColumn \"{name}\" is given"));
    }
    if !config.key_fields.is_empty() {
        let fields: Vec<String> = config.key_fields.iter().map(ToString::to_string).collect();
        return (ConflictMode::Update, format!("because the key fields {} are given", fields.join(", ")));
    }
    if !live.primary_key.is_empty() {
        let names: Vec<&str> = live.primary_key.iter().map(String::as_str).collect();
        return (ConflictMode::Update, format!("because the table has the primary key {}", listed(&names)));
    }
    (ConflictMode::Append, "because neither key fields nor a primary key are known".to_owned())
}

fn check_deferred<C: LiveColumn>(config: &TableConfig, live: &LiveTable<C>, mode: ConflictMode) -> Result<(), Unfit> {
    for key in &live.deferred {
        let place = match key {
            DeferredKey::Own => "the table has a foreign key".to_owned(),
            DeferredKey::Of(other) => format!("table \"{other}\" refers to it by a foreign key"),
        };
        let removes = config.deletes == Deletes::Some && mode == ConflictMode::Update;
        if *key == DeferredKey::Own || removes {
            let message = format!(
                "{place} that is INITIALLY DEFERRED: it would fail at COMMIT with no row to blame; declare it \
                 INITIALLY IMMEDIATE"
            );
            return Err(unfit(DEFERRED_KEY, message));
        }
    }
    Ok(())
}

/// Every column that the configuration names is there.
fn check_named<C: LiveColumn>(config: &TableConfig, live: &LiveTable<C>) -> Result<(), Unfit> {
    let named = config.columns.map.iter().map(|(column, _)| ("columns", column));
    let named = named.chain(config.key_column.iter().map(|column| ("keyColumn", column)));
    let newer = config.mode == Some(ConflictMode::Newer);
    let named = named.chain(config.version_column.iter().filter(|_| newer).map(|column| ("versionColumn", column)));
    for (place, name) in named {
        if live.column(name).is_none() {
            let known: Vec<&str> = live.columns.iter().map(|column| column.name()).collect();
            let meant = match nearest(name, known.iter().copied()) {
                Some(name) => format!("; did you mean \"{name}\"?"),
                None => String::new(),
            };
            let message = format!(
                "{place} names \"{name}\", and the table has no such column that can be written; it has {}{meant}",
                listed(&known)
            );
            return Err(unfit(NO_COLUMN, message));
        }
    }
    Ok(())
}

fn feed_columns<C: LiveColumn>(
    config: &TableConfig,
    live: &LiveTable<C>,
    mode: ConflictMode,
    fields: &mut Vec<FieldPath>,
) -> Result<Vec<FedColumn<C>>, Unfit> {
    let mut fed = Vec::with_capacity(live.columns.len());
    for column in &live.columns {
        match feed(config, column, mode, fields) {
            Some(feed) => fed.push(FedColumn { live: column.clone(), feed }),
            None if column.required() && !column.fills_itself() => {
                let message = format!(
                    "column \"{}\" is NOT NULL without a default, and in onConflict: {} nothing feeds it; give it a \
                     default, or map a field to it under columns",
                    column.name(),
                    mode.name()
                );
                return Err(unfit(UNFED_COLUMN, message));
            }
            None => {}
        }
    }
    Ok(fed)
}

fn feed<C: LiveColumn>(
    config: &TableConfig,
    column: &C,
    mode: ConflictMode,
    fields: &mut Vec<FieldPath>,
) -> Option<Feed> {
    let named = |name: &str| column.is_named(name);
    if config.key_column.as_deref().is_some_and(named) {
        return Some(Feed::Key);
    }
    if let Some((_, path)) = config.columns.map.iter().find(|(name, _)| named(name)) {
        return Some(Feed::Field(slot(fields, path.clone())));
    }
    if config.version_column.as_deref().is_some_and(named) {
        return Some(Feed::Field(slot(fields, FieldPath::of_name(column.name()))));
    }
    if named(VERSION_COLUMN) {
        return (mode == ConflictMode::Newer && config.version_column.is_none()).then_some(Feed::Version);
    }
    if named(DELETED_COLUMN) {
        return (mode == ConflictMode::Newer).then_some(Feed::Deleted);
    }
    Some(Feed::Field(slot(fields, FieldPath::of_name(column.name()))))
}

fn slot(fields: &mut Vec<FieldPath>, path: FieldPath) -> usize {
    fields.iter().position(|field| *field == path).unwrap_or_else(|| {
        fields.push(path);
        fields.len() - 1
    })
}

/// That the table `name` is not there: the one of `known` that was probably meant, and the statement that makes it.
pub(crate) fn no_such_table(name: &str, known: &[String], create: &str) -> Unfit {
    let meant = match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => format!(" (did you mean \"{meant}\", which is there?)"),
        None => String::new(),
    };
    unfit(NO_TABLE, format!("there is no such table{meant}; create it, for example with\n{create}"))
}

/// `"a", "b"`.
pub(crate) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
