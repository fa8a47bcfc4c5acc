//! A case: one fault of files at one moment, over a layout, with some workers, in a setting; a seed deals one.

use super::packed_faults::Packing;
use crate::setting::Setting;

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
    /// A compressed member that was read to its end is written anew in place.
    RewritePackedRead,
    /// A second member is appended to a compressed file after its successor was read.
    LateGrowthPacked,
    /// The live file is compressed under its own name, and the next one is written at its path.
    OwnArchive,
    /// The folder is replaced by a copy of it, whose files have other inodes; a person accepts that.
    RestoredCopy,
    /// Two files with the same content are dropped into the folder.
    TwinFiles,
    /// An archive is dropped into the folder under its own name before it is whole.
    GrowingArchive,
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
    /// The same, compressed with zstd.
    ZstdArchives,
    /// The same with plain files, whose names look like rotated ones; the configuration says that they are not.
    DroppedFiles,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordFormat {
    /// Each a line of JSON.
    Jsonl,
    /// CSV, whose header begins each file.
    Csv,
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
    /// Two workers without a state store: no lease, each claim fences the other.
    Unleased,
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
    /// How records are written.
    pub format: RecordFormat,
    /// What is promised, and where the rows go.
    pub setting: Setting,
}

impl FileFault {
    /// All of them.
    pub const ALL: [Self; 33] = [
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
        Self::RewritePackedRead,
        Self::LateGrowthPacked,
        Self::OwnArchive,
        Self::RestoredCopy,
        Self::TwinFiles,
        Self::GrowingArchive,
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
            Self::RewritePackedRead => "rewrite-read-packed",
            Self::LateGrowthPacked => "late-growth-packed",
            Self::OwnArchive => "own-archive",
            Self::RestoredCopy => "restored-copy",
            Self::TwinFiles => "twin-files",
            Self::GrowingArchive => "growing-archive",
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
            Self::RemoveRead
            | Self::DropFiles
            | Self::ReplaceDeclared
            | Self::RotateEmpty
            | Self::RestoredCopy
            | Self::TwinFiles
            | Self::GrowingArchive => &[Idle, Paused, Down, TargetAway],
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
            | Self::RewritePackedRead
            | Self::LateGrowthPacked
            | Self::OwnArchive
            | Self::OlderAppears
            | Self::HardLink => &[Idle, Traffic, Paused, Down, TargetAway, TakeOver],
        }
    }

    /// Whether it means anything over these files.
    #[must_use]
    pub const fn fits(self, layout: SourceLayout) -> bool {
        use SourceLayout::{
            Archives, DroppedFiles, LinkedPath, ManyFiles, OrderedByName, PatternBeforeExtension, PatternOfNames,
            PatternWithSuffixes, SinglePath, ZstdArchives,
        };
        match self {
            Self::DropFiles => layout.is_dropped(),
            Self::TwinFiles => matches!(layout, DroppedFiles),
            Self::GrowingArchive => layout.packing().is_some(),
            Self::ReplaceDeclared | Self::PathEdited => matches!(layout, SinglePath),
            Self::RemoveRead | Self::FolderAway | Self::RewriteRead | Self::ReplaceByRename | Self::RestoredCopy => {
                true
            }
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
            Self::LayoutChanged => matches!(layout, SinglePath | PatternOfNames),
            // Names that only rise have no gaps, no second kind and no copies.
            Self::RotateDated | Self::RemoveUnread | Self::MixedSuffixes | Self::FallingDates | Self::OwnArchive => {
                !matches!(layout, Archives | ZstdArchives | DroppedFiles | OrderedByName)
            }
            Self::CopyTruncate => !matches!(layout, DroppedFiles | OrderedByName),
            Self::RewriteShorter | Self::RewriteEqual | Self::RewriteLonger | Self::RewriteTail | Self::LateGrowth => {
                !matches!(layout, DroppedFiles)
            }
            Self::RotateNumbered
            | Self::RotateCompressed
            | Self::RotateDelayed
            | Self::RotateEmpty
            | Self::RemoveAndRecreate
            | Self::RemoveCurrent
            | Self::RewritePackedRead
            | Self::LateGrowthPacked
            | Self::OlderAppears => !layout.is_dropped(),
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
    pub const ALL: [Self; 10] = [
        Self::SinglePath,
        Self::LinkedPath,
        Self::PatternWithSuffixes,
        Self::PatternBeforeExtension,
        Self::OrderedByName,
        Self::PatternOfNames,
        Self::ManyFiles,
        Self::Archives,
        Self::ZstdArchives,
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
            Self::ZstdArchives => "zstd-archives",
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
            Self::Archives | Self::ZstdArchives | Self::DroppedFiles => 2,
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
            Self::ZstdArchives => "jsonl.zst",
            Self::DroppedFiles => "part",
        }
    }

    /// Whether its files are complete from the first moment on, and no more is written to them.
    #[must_use]
    pub const fn is_dropped(self) -> bool {
        self.packing().is_some() || matches!(self, Self::DroppedFiles)
    }

    /// What its files are compressed with.
    #[must_use]
    pub const fn packing(self) -> Option<Packing> {
        match self {
            Self::Archives => Some(Packing::Gzip),
            Self::ZstdArchives => Some(Packing::Zstd),
            Self::SinglePath
            | Self::LinkedPath
            | Self::PatternWithSuffixes
            | Self::PatternBeforeExtension
            | Self::OrderedByName
            | Self::PatternOfNames
            | Self::ManyFiles
            | Self::DroppedFiles => None,
        }
    }

    /// Whether its pattern finds what a file becomes that is compressed under its own name.
    #[must_use]
    pub const fn finds_archives(self) -> bool {
        matches!(self, Self::PatternWithSuffixes | Self::PatternBeforeExtension)
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
            Self::ZstdArchives => Some("*.jsonl.zst"),
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
            Self::Unleased => "unleased",
        }
    }
}

impl SourceCase {
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

    /// Its name; the same as that of every case with the same parts.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { fault, moment, layout, workers, format, setting } = self;
        let format = if *format == RecordFormat::Csv { "/csv" } else { "" };
        format!("sources/{}/{}/{}/{}/{setting}{format}", fault.name(), moment.name(), layout.name(), workers.name())
    }
}
