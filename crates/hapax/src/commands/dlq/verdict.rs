//! Is a replay safe? Pure: a function of how the delivery writes and of the letter.

use hapax_engine::letters::StoredLetter;
use hapax_model::delivery::Guarantee;
use hapax_model::letter::{IN_DOUBT, LetterBytes};
use hapax_model::mode::{ConflictMode, ProgressPlace};

/// What a person allows a replay to do, beyond what is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// An older value may overwrite a newer one.
    pub(super) overwrite: bool,
    /// What may be in the target already may be written again.
    pub(super) in_doubt: bool,
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
    /// Written and marked in two places, and never doubled: it is marked as in doubt first.
    InDoubtFirst,
    /// A row of its key is there: it may be newer, and would be overwritten.
    OutOfOrder,
    /// Progress is elsewhere: nothing keeps a worker from writing a newer row between the look at the table and the replay.
    UntoldWithoutFence,
    /// Events delete rows: a key without a row may have been deleted by a newer event.
    UntoldAfterDeletes,
    /// Nobody knows whether its rows were written, and nothing tells rows apart: they may be written twice.
    InDoubt,
    /// Only the beginning of the input was kept.
    Impossible,
}

impl Verdict {
    /// For people.
    pub(super) const fn text(self, allowed: Allowed) -> &'static str {
        match self {
            Self::OutOfOrder | Self::UntoldWithoutFence | Self::UntoldAfterDeletes if allowed.overwrite => {
                "out of order: an older value may overwrite a newer one, as --overwrite allows"
            }
            Self::Safe => "safe: written and marked in one transaction",
            Self::SafeByKey => "safe: written by key, so that a repeat changes nothing",
            Self::MayRepeat => "may repeat: the letter is marked in another database than the row is written to",
            Self::InDoubtFirst => {
                "never doubled: each is marked as in doubt before its row is written, and stays so if the replay is cut off"
            }
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
            Self::InDoubt if allowed.in_doubt => "in doubt: they may be written a second time, as --in-doubt allows",
            Self::InDoubt => {
                "in doubt: whether their rows were written is not known, and append would write them a second time. They stay; \
                 find out by `hapax trace` or in the table which of them are missing, and replay these with --id NUMBER \
                 --in-doubt, or discard the others"
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
            Self::InDoubtFirst => "inDoubtFirst",
            Self::OutOfOrder => "outOfOrder",
            Self::UntoldWithoutFence | Self::UntoldAfterDeletes => "orderUnknown",
            Self::InDoubt => "inDoubt",
            Self::Impossible => "impossible",
        }
    }

    /// Whether the replay goes ahead.
    pub(super) const fn goes_ahead(self, allowed: Allowed) -> bool {
        match self {
            Self::Safe | Self::SafeByKey | Self::MayRepeat | Self::InDoubtFirst => true,
            Self::OutOfOrder | Self::UntoldWithoutFence | Self::UntoldAfterDeletes => allowed.overwrite,
            Self::InDoubt => allowed.in_doubt,
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
    pub(super) guarantee: Guarantee,
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
pub(super) fn judge(letter: &StoredLetter, writing: Writing) -> Verdict {
    match &letter.bytes {
        LetterBytes::Cut { .. } => Verdict::Impossible,
        LetterBytes::Whole(_) => judge_whole(&letter.code, writing),
    }
}

/// The same for any letter of that code whose input is kept whole. Where it is out of order, the table tells which letters
/// are not: those without a row.
pub(super) fn judge_whole(code: &str, writing: Writing) -> Verdict {
    // With progress in the sink the target has said that they did not land.
    if code == IN_DOUBT && writing.mode == ConflictMode::Append && writing.progress == ProgressPlace::State {
        return Verdict::InDoubt;
    }
    judge_known(writing)
}

/// The same for letters of which it is known that they were not written.
pub(super) const fn judge_known(writing: Writing) -> Verdict {
    match (writing.mode, writing.progress, writing.deletes) {
        (ConflictMode::Update, _, Deletes::Some) => Verdict::UntoldAfterDeletes,
        (ConflictMode::Update, ProgressPlace::State, Deletes::None) => Verdict::UntoldWithoutFence,
        (ConflictMode::Update, ProgressPlace::Sink, Deletes::None) => Verdict::OutOfOrder,
        (ConflictMode::Append, ProgressPlace::State, _) => match writing.guarantee {
            Guarantee::AtMostOnce => Verdict::InDoubtFirst,
            Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => Verdict::MayRepeat,
        },
        (ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::State, _) => Verdict::SafeByKey,
        (ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::Sink, _) => Verdict::Safe,
    }
}
