//! Is a replay safe? Pure: a function of how the delivery writes and of the letter.

use hapax_engine::letters::StoredLetter;
use hapax_model::letter::LetterBytes;
use hapax_model::mode::{ConflictMode, ProgressPlace};

/// Whether an older value may overwrite a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    /// A person said so.
    Allowed,
    /// Not without being told.
    Refused,
}

/// What replaying a letter may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It lands once, whatever happens; in `update`, where no row of its key is there, also in order.
    Safe,
    /// Written and marked in two places, but by key: a repeat changes nothing.
    SafeByKey,
    /// Written and marked in two places: a crash between them repeats it.
    MayRepeat,
    /// A row of its key is there: it may be newer, and would be overwritten.
    OutOfOrder,
    /// Progress is elsewhere: nothing keeps a worker from writing a newer row between the look at the table and the replay.
    UntoldWithoutFence,
    /// Events delete rows: a key without a row may have been deleted by a newer event.
    UntoldAfterDeletes,
    /// Only the beginning of the input was kept.
    Impossible,
}

impl Verdict {
    /// For people.
    pub(super) const fn text(self, overwrite: Overwrite) -> &'static str {
        match self {
            Self::OutOfOrder | Self::UntoldWithoutFence | Self::UntoldAfterDeletes
                if matches!(overwrite, Overwrite::Allowed) =>
            {
                "out of order: an older value may overwrite a newer one, as --overwrite allows"
            }
            Self::Safe => "safe: written and marked in one transaction",
            Self::SafeByKey => "safe: written by key, so that a repeat changes nothing",
            Self::MayRepeat => "may repeat: the letter is marked in another database than the row is written to",
            Self::OutOfOrder => {
                "out of order: an older value may overwrite a newer one; they stay, unless you say --overwrite"
            }
            Self::UntoldWithoutFence => {
                "order unknown: with progress: state nothing keeps a worker from writing a newer row between the look at the \
                 table and the replay. They stay; stop the workers (hapax pause, then wait until status says paused), find \
                 out by `hapax trace` which of them have no newer row, and replay these with --id NUMBER --overwrite"
            }
            Self::UntoldAfterDeletes => {
                "order unknown: deleteWhen removes rows, so that a key without a row may have been deleted by a newer event, \
                 which a replay would undo. They stay; find out by `hapax trace` which of them have no newer event, and \
                 replay these with --id NUMBER --overwrite"
            }
            Self::Impossible => "impossible: the input was too large, only its beginning is kept",
        }
    }

    /// One word, for programs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::SafeByKey => "safeByKey",
            Self::MayRepeat => "mayRepeat",
            Self::OutOfOrder => "outOfOrder",
            Self::UntoldWithoutFence | Self::UntoldAfterDeletes => "orderUnknown",
            Self::Impossible => "impossible",
        }
    }

    /// Whether the replay goes ahead.
    pub(super) const fn goes_ahead(self, overwrite: Overwrite) -> bool {
        match self {
            Self::Safe | Self::SafeByKey | Self::MayRepeat => true,
            Self::OutOfOrder | Self::UntoldWithoutFence | Self::UntoldAfterDeletes => {
                matches!(overwrite, Overwrite::Allowed)
            }
            Self::Impossible => false,
        }
    }
}

/// How a delivery writes, as far as it decides about replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) mode: ConflictMode,
    pub(super) progress: ProgressPlace,
    pub(super) deletes: Deletes,
}

/// Whether events delete rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletes {
    /// Some do, as `deleteWhen` says.
    Some,
    /// None does.
    None,
}

/// Judges one letter of a delivery.
pub(super) const fn judge(letter: &StoredLetter, writing: Writing) -> Verdict {
    if matches!(letter.bytes, LetterBytes::Cut { .. }) {
        return Verdict::Impossible;
    }
    judge_whole(writing)
}

/// The same for any letter whose input is kept whole. Where it is out of order, the table tells which letters are not: those
/// without a row.
pub(super) const fn judge_whole(writing: Writing) -> Verdict {
    match (writing.mode, writing.progress, writing.deletes) {
        (ConflictMode::Update, _, Deletes::Some) => Verdict::UntoldAfterDeletes,
        (ConflictMode::Update, ProgressPlace::State, Deletes::None) => Verdict::UntoldWithoutFence,
        (ConflictMode::Update, ProgressPlace::Sink, Deletes::None) => Verdict::OutOfOrder,
        (ConflictMode::Append, ProgressPlace::State, _) => Verdict::MayRepeat,
        (ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::State, _) => Verdict::SafeByKey,
        (ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::Sink, _) => Verdict::Safe,
    }
}
