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
    /// A row of its key is there, or was removed: it may be newer, and would be overwritten.
    OutOfOrder,
    /// Only the beginning of the input was kept.
    Impossible,
}

impl Verdict {
    /// For people.
    pub(super) const fn text(self, overwrite: Overwrite) -> &'static str {
        match self {
            Self::OutOfOrder if matches!(overwrite, Overwrite::Allowed) => {
                "out of order: an older value may overwrite a newer one, as --overwrite allows"
            }
            Self::Safe => "safe: written and marked in one transaction",
            Self::SafeByKey => "safe: written by key, so that a repeat changes nothing",
            Self::MayRepeat => "may repeat: the letter is marked in another database than the row is written to",
            Self::OutOfOrder => {
                "out of order: an older value may overwrite a newer one; they stay, unless you say --overwrite"
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
            Self::Impossible => "impossible",
        }
    }

    /// Whether the replay goes ahead.
    pub(super) const fn goes_ahead(self, overwrite: Overwrite) -> bool {
        match self {
            Self::Safe | Self::SafeByKey | Self::MayRepeat => true,
            Self::OutOfOrder => matches!(overwrite, Overwrite::Allowed),
            Self::Impossible => false,
        }
    }
}

/// Judges one letter of a delivery that writes in `mode` and keeps its letters at `progress`.
pub(super) fn judge(letter: &StoredLetter, mode: ConflictMode, progress: ProgressPlace) -> Verdict {
    if matches!(letter.bytes, LetterBytes::Cut { .. }) {
        return Verdict::Impossible;
    }
    judge_whole(mode, progress)
}

/// The same for any letter whose input is kept whole.
pub(super) const fn judge_whole(mode: ConflictMode, progress: ProgressPlace) -> Verdict {
    match (mode, progress) {
        (ConflictMode::Update, _) => Verdict::OutOfOrder,
        (ConflictMode::Append, ProgressPlace::State) => Verdict::MayRepeat,
        (ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::State) => Verdict::SafeByKey,
        (ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Newer, ProgressPlace::Sink) => Verdict::Safe,
    }
}
