//! A case: one fault of files at one moment, over a layout, with some workers, in a setting; a seed deals one.

use crate::setting::{Guarantee, Place, Setting, Stack};
use crate::shape::Shape;

/// What is done to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileFault {
    /// Renamed along a chain of numbers, all kept.
    RotateNumbered,
    /// Renamed to a suffix with a date, all kept.
    RotateDated,
    /// Renamed along a chain of numbers and compressed at once.
    RotateCompressed,
    /// Renamed along a chain of numbers, compressed at the next rotation.
    RotateDelayed,
    /// Rotated twice with nothing written in between.
    RotateEmpty,
    /// The oldest member, which was read to its end, is removed.
    RemoveRead,
    /// The folder is away for a while.
    FolderAway,
    /// More complete files are dropped into the folder.
    DropFiles,
    /// Another file is renamed over it, and the configuration says that this is how it is written.
    ReplaceDeclared,
    /// Copied and then truncated in place, as logrotate's `copytruncate` does.
    CopyTruncate,
    /// Written anew in place, shorter than what was read.
    RewriteShorter,
    /// Written anew in place, of the same length.
    RewriteEqual,
    /// Written anew in place, longer.
    RewriteLonger,
    /// Written anew in place: the first record stays, what was read last does not.
    RewriteTail,
    /// A member that was read to its end is written anew in place, of the same length.
    RewriteRead,
    /// Another file is renamed over it.
    ReplaceByRename,
    /// Removed, and another file is written under its name.
    RemoveAndRecreate,
    /// Rotated away, and a member that nobody has read is removed.
    RemoveUnread,
    /// Rotated away, and the member that progress names is removed before it was read to its end.
    RemoveCurrent,
    /// Rotated once to a number and once to a date.
    MixedSuffixes,
    /// Rotated to dates that fall while the files get younger.
    FallingDates,
    /// A line is written to a rotated file after its successor was read.
    LateGrowth,
    /// A member older than the one that progress names appears.
    OlderAppears,
    /// A second name for the same file, which the pattern meets too.
    HardLink,
    /// The folder is moved, and the path in the configuration follows it.
    FolderMoved,
    /// The file is renamed, and the path in the configuration follows it.
    PathEdited,
    /// The path in the configuration becomes a pattern that meets the same file, or the other way round.
    LayoutChanged,
}

/// When it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultMoment {
    /// Everything written was delivered; the workers wait for more.
    Idle,
    /// The writer writes without a pause.
    Traffic,
    /// The workflow is paused by `hapax pause`.
    Paused,
    /// No worker runs: killed, or asked to end.
    Down,
    /// The target takes no writes.
    TargetAway,
    /// The active worker was killed just now, and its standby has not taken over.
    TakeOver,
}

/// Which files there are, and how the configuration names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceLayout {
    /// One path.
    SinglePath,
    /// One path that is a symbolic link to a file in another folder.
    LinkedPath,
    /// A pattern that meets the live names and what rotation makes of them.
    PatternWithSuffixes,
    /// A pattern that meets both, with numbers and dates before the extension.
    PatternBeforeExtension,
    /// A pattern whose files follow each other in the order of their names.
    OrderedByName,
    /// A pattern that meets the live names only.
    PatternOfNames,
    /// The same with more files than are open at once.
    ManyFiles,
    /// A pattern over compressed files that are renamed into the folder when they are complete.
    Archives,
    /// The same with plain files, whose names look like rotated ones; the configuration says that they are not.
    DroppedFiles,
}

/// Who works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkerArrangement {
    /// One worker.
    One,
    /// One worker, and a second that stands by.
    Standby,
    /// A second worker takes over with `--take-over` before the fault.
    TakenOver,
    /// One worker that is killed or ended between the turns, and started again.
    Restarted,
}

/// One case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceCase {
    /// What is done to the files.
    pub fault: FileFault,
    /// When.
    pub moment: FaultMoment,
    /// Which files there are.
    pub layout: SourceLayout,
    /// Who works.
    pub workers: WorkerArrangement,
    /// What is promised, and where the rows go.
    pub setting: Setting,
}

impl FileFault {
    /// All of them.
    pub const ALL: [Self; 27] = [
        Self::RotateNumbered,
        Self::RotateDated,
        Self::RotateCompressed,
        Self::RotateDelayed,
        Self::RotateEmpty,
        Self::RemoveRead,
        Self::FolderAway,
        Self::DropFiles,
        Self::ReplaceDeclared,
        Self::CopyTruncate,
        Self::RewriteShorter,
        Self::RewriteEqual,
        Self::RewriteLonger,
        Self::RewriteTail,
        Self::RewriteRead,
        Self::ReplaceByRename,
        Self::RemoveAndRecreate,
        Self::RemoveUnread,
        Self::RemoveCurrent,
        Self::MixedSuffixes,
        Self::FallingDates,
        Self::LateGrowth,
        Self::OlderAppears,
        Self::HardLink,
        Self::FolderMoved,
        Self::PathEdited,
        Self::LayoutChanged,
    ];

    /// Its name in cases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RotateNumbered => "rotate-numbered",
            Self::RotateDated => "rotate-dated",
            Self::RotateCompressed => "rotate-compressed",
            Self::RotateDelayed => "rotate-delaycompress",
            Self::RotateEmpty => "rotate-empty",
            Self::RemoveRead => "remove-read",
            Self::FolderAway => "folder-away",
            Self::DropFiles => "drop-files",
            Self::ReplaceDeclared => "replace-declared",
            Self::CopyTruncate => "copytruncate",
            Self::RewriteShorter => "rewrite-shorter",
            Self::RewriteEqual => "rewrite-equal",
            Self::RewriteLonger => "rewrite-longer",
            Self::RewriteTail => "rewrite-tail",
            Self::RewriteRead => "rewrite-read",
            Self::ReplaceByRename => "replace-by-rename",
            Self::RemoveAndRecreate => "remove-and-recreate",
            Self::RemoveUnread => "remove-unread",
            Self::RemoveCurrent => "remove-current",
            Self::MixedSuffixes => "mixed-suffixes",
            Self::FallingDates => "falling-dates",
            Self::LateGrowth => "late-growth",
            Self::OlderAppears => "older-appears",
            Self::HardLink => "hard-link",
            Self::FolderMoved => "folder-moved",
            Self::PathEdited => "path-edited",
            Self::LayoutChanged => "layout-changed",
        }
    }

    /// The moments at which it means what its name says.
    #[must_use]
    pub const fn moments(self) -> &'static [FaultMoment] {
        use FaultMoment::{Down, Idle, Paused, TakeOver, TargetAway, Traffic};
        match self {
            // What must not have been read: only while nobody can read it.
            Self::RemoveUnread | Self::RemoveCurrent | Self::MixedSuffixes | Self::FallingDates => {
                &[Paused, Down, TargetAway]
            }
            // A configuration is read at a start.
            Self::FolderMoved | Self::PathEdited | Self::LayoutChanged => &[Down],
            Self::RemoveRead | Self::DropFiles | Self::ReplaceDeclared | Self::RotateEmpty => {
                &[Idle, Paused, Down, TargetAway]
            }
            Self::RotateNumbered
            | Self::RotateDated
            | Self::RotateCompressed
            | Self::RotateDelayed
            | Self::FolderAway
            | Self::CopyTruncate
            | Self::RewriteShorter
            | Self::RewriteEqual
            | Self::RewriteLonger
            | Self::RewriteTail
            | Self::RewriteRead
            | Self::ReplaceByRename
            | Self::RemoveAndRecreate
            | Self::LateGrowth
            | Self::OlderAppears
            | Self::HardLink => &[Idle, Traffic, Paused, Down, TargetAway, TakeOver],
        }
    }

    /// Whether it means anything over these files.
    #[must_use]
    pub const fn fits(self, layout: SourceLayout) -> bool {
        use SourceLayout::{
            Archives, DroppedFiles, LinkedPath, ManyFiles, OrderedByName, PatternBeforeExtension, PatternOfNames,
            PatternWithSuffixes, SinglePath,
        };
        match self {
            Self::DropFiles => matches!(layout, Archives | DroppedFiles),
            Self::ReplaceDeclared => matches!(layout, SinglePath),
            Self::RemoveRead | Self::FolderAway | Self::RewriteRead | Self::ReplaceByRename => true,
            Self::HardLink => matches!(
                layout,
                PatternWithSuffixes
                    | PatternBeforeExtension
                    | OrderedByName
                    | PatternOfNames
                    | ManyFiles
                    | DroppedFiles
            ),
            Self::FolderMoved => !matches!(layout, LinkedPath),
            Self::PathEdited => matches!(layout, SinglePath),
            Self::LayoutChanged => matches!(layout, SinglePath | PatternOfNames),
            // Names that only rise have no gaps, no second kind and no copies.
            Self::RotateDated | Self::CopyTruncate | Self::RemoveUnread | Self::MixedSuffixes | Self::FallingDates => {
                !matches!(layout, Archives | DroppedFiles | OrderedByName)
            }
            Self::RotateNumbered
            | Self::RotateCompressed
            | Self::RotateDelayed
            | Self::RotateEmpty
            | Self::RewriteShorter
            | Self::RewriteEqual
            | Self::RewriteLonger
            | Self::RewriteTail
            | Self::RemoveAndRecreate
            | Self::RemoveCurrent
            | Self::LateGrowth
            | Self::OlderAppears => !matches!(layout, Archives | DroppedFiles),
        }
    }
}

impl FaultMoment {
    /// Its name in cases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Traffic => "traffic",
            Self::Paused => "paused",
            Self::Down => "down",
            Self::TargetAway => "target-away",
            Self::TakeOver => "take-over",
        }
    }
}

impl SourceLayout {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::SinglePath,
        Self::LinkedPath,
        Self::PatternWithSuffixes,
        Self::PatternBeforeExtension,
        Self::OrderedByName,
        Self::PatternOfNames,
        Self::ManyFiles,
        Self::Archives,
        Self::DroppedFiles,
    ];

    /// Its name in cases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SinglePath => "single",
            Self::LinkedPath => "linked",
            Self::PatternWithSuffixes => "suffix-pattern",
            Self::PatternBeforeExtension => "infix-pattern",
            Self::OrderedByName => "ordered",
            Self::PatternOfNames => "name-pattern",
            Self::ManyFiles => "many",
            Self::Archives => "archives",
            Self::DroppedFiles => "dropped",
        }
    }

    /// How many files it begins with.
    #[must_use]
    pub const fn files(self) -> usize {
        match self {
            Self::SinglePath | Self::LinkedPath | Self::OrderedByName => 1,
            Self::PatternWithSuffixes | Self::PatternBeforeExtension | Self::PatternOfNames => 3,
            // Eight are open at once.
            Self::ManyFiles => 13,
            Self::Archives | Self::DroppedFiles => 2,
        }
    }

    /// What the names of its files end in.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::SinglePath | Self::LinkedPath | Self::PatternOfNames | Self::ManyFiles => "log",
            Self::PatternWithSuffixes => "jsonl",
            Self::PatternBeforeExtension => "ndjson",
            Self::OrderedByName => "lines",
            Self::Archives => "jsonl.gz",
            Self::DroppedFiles => "part",
        }
    }

    /// Whether its files are complete from the first moment on, and no more is written to them.
    #[must_use]
    pub const fn is_dropped(self) -> bool {
        matches!(self, Self::Archives | Self::DroppedFiles)
    }

    /// The pattern in the configuration, without its folder; none for a path.
    #[must_use]
    pub const fn pattern(self) -> Option<&'static str> {
        match self {
            Self::SinglePath | Self::LinkedPath => None,
            Self::PatternWithSuffixes => Some("*.jsonl*"),
            Self::PatternBeforeExtension => Some("*.ndjson*"),
            Self::OrderedByName => Some("batch-*.lines*"),
            Self::PatternOfNames | Self::ManyFiles => Some("*.log"),
            Self::Archives => Some("*.jsonl.gz"),
            Self::DroppedFiles => Some("*.part.*"),
        }
    }
}

impl WorkerArrangement {
    /// Its name in cases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Standby => "standby",
            Self::TakenOver => "taken-over",
            Self::Restarted => "restarted",
        }
    }
}

const fn at(guarantee: Guarantee, shape: Shape, place: Place) -> Setting {
    Setting::new(guarantee, shape, place)
}

/// The settings that a case may have; the strictest stand there more than once.
static SETTINGS: [Setting; 22] = [
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
    at(Guarantee::AtMostOnce, Shape::Append, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::State),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::State),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::State),
    at(Guarantee::AtMostOnce, Shape::Append, Place::State),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink).on(Stack::PostgresOnly),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State).on(Stack::Postgres),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink).on(Stack::Mysql),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink).on(Stack::Mysql),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink).on(Stack::MysqlAndPostgres),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State).on(Stack::Mysql),
];

impl SourceCase {
    /// The case that a seed deals: as many seeds in a row as there are faults with moments meet all of them, in an order
    /// that looks like none; the rest is drawn.
    #[must_use]
    pub fn deal(seed: u64) -> Self {
        let mut pairs = pairs();
        fastrand::Rng::with_seed(0x50_75_72_63).shuffle(&mut pairs);
        let turn = usize::try_from(seed % pairs.len() as u64).unwrap_or(0);
        let (fault, moment) = pairs[turn];
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15);
        let layouts: Vec<SourceLayout> = SourceLayout::ALL.into_iter().filter(|layout| fault.fits(*layout)).collect();
        loop {
            let case = Self {
                fault,
                moment,
                layout: layouts[random.usize(..layouts.len())],
                workers: arrangement(moment, &mut random),
                setting: SETTINGS[random.usize(..SETTINGS.len())],
            };
            if case.is_legal() {
                return case;
            }
        }
    }

    /// What the configuration says about the chains of files, where that is not what is usual.
    #[must_use]
    pub const fn rule(&self) -> Option<&'static str> {
        match (self.fault, self.layout) {
            (FileFault::ReplaceDeclared, _) => Some("rotation: replaced"),
            (_, SourceLayout::DroppedFiles) => Some("rotation: none"),
            (_, SourceLayout::PatternBeforeExtension) => Some("rotation: beforeExtension"),
            (_, SourceLayout::OrderedByName) => Some("order: name"),
            (_, _) => None,
        }
    }

    /// Whether the files of a lane are told by their names.
    #[must_use]
    pub fn has_chains(&self) -> bool {
        !self.layout.is_dropped() && self.fault != FileFault::ReplaceDeclared
    }

    /// Whether its parts go together.
    fn is_legal(&self) -> bool {
        // Whether a plain file will grow is known by nobody: only a live worker that holds it knows that it has all.
        if self.fault == FileFault::RemoveRead
            && self.layout == SourceLayout::DroppedFiles
            && self.moment != FaultMoment::Idle
        {
            return false;
        }
        // Nothing is appended to files that come whole.
        if self.layout.is_dropped() && self.moment == FaultMoment::Traffic {
            return false;
        }
        let alone = matches!(self.workers, WorkerArrangement::One | WorkerArrangement::Restarted);
        // Where nothing fences, `update` holds with one live worker only: its condition.
        alone || self.setting.place == Place::Sink || self.setting.shape != Shape::Update
    }

    /// Its name; the same as that of every case with the same parts.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { fault, moment, layout, workers, setting } = self;
        format!("sources/{}/{}/{}/{}/{setting}", fault.name(), moment.name(), layout.name(), workers.name())
    }
}

fn arrangement(moment: FaultMoment, random: &mut fastrand::Rng) -> WorkerArrangement {
    if moment == FaultMoment::TakeOver {
        return WorkerArrangement::Standby;
    }
    match random.u8(0..10) {
        0..=3 => WorkerArrangement::One,
        4..=6 => WorkerArrangement::Standby,
        7 => WorkerArrangement::TakenOver,
        _ => WorkerArrangement::Restarted,
    }
}

/// Every fault with every moment at which it means something.
#[must_use]
pub fn pairs() -> Vec<(FileFault, FaultMoment)> {
    FileFault::ALL.into_iter().flat_map(|fault| fault.moments().iter().map(move |moment| (fault, *moment))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: a row of seeds as long as the list meets every fault at every moment. Method: deal them.
    #[test]
    fn every_fault_meets_every_moment() {
        let all: BTreeSet<_> = pairs().into_iter().collect();
        assert_eq!(all.len(), pairs().len(), "a pair stands there twice");
        let first = 4_000_000_000;
        let dealt = (first..first + all.len() as u64).map(SourceCase::deal).map(|case| (case.fault, case.moment));
        assert_eq!(dealt.collect::<BTreeSet<_>>(), all);
    }

    /// Goal: a seed deals one case, and every layout, arrangement and setting is dealt. Method: deal many.
    #[test]
    fn a_seed_deals_one_case_and_all_parts_are_dealt() {
        let dealt: Vec<SourceCase> = (0..1000).map(SourceCase::deal).collect();
        assert_eq!(dealt, (0..1000).map(SourceCase::deal).collect::<Vec<_>>());
        let layouts: BTreeSet<_> = dealt.iter().map(|case| case.layout).collect();
        let workers: BTreeSet<_> = dealt.iter().map(|case| case.workers).collect();
        let settings: BTreeSet<_> = dealt.iter().map(|case| case.setting.to_string()).collect();
        assert_eq!((layouts.len(), workers.len(), settings.len()), (9, 4, 20));
        assert!(dealt.iter().all(|case| case.fault.fits(case.layout)));
    }
}
