//! What must follow from a case, by the rules of the protocol for files: a lane is a chain, not a name.

use super::case::{FaultMoment, FileFault, SourceCase};

/// What must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Every record is delivered once, and nobody stops.
    Everything,
    /// Every worker ends with code 5 and names the files; what was delivered is a beginning of each lane.
    Stop,
    /// The same; once a person has accepted what is there, everything is delivered, nothing twice.
    StopUntilAccepted,
    /// One of the two: which, depends on whether a worker still holds the file open.
    Either,
}

/// What must follow from `case`, and why.
#[must_use]
pub const fn expectation(case: &SourceCase) -> (Expectation, &'static str) {
    use Expectation::{Either, Everything, Stop, StopUntilAccepted};
    match case.fault {
        FileFault::RotateNumbered => (Everything, "numbers fall: a chain, oldest first"),
        FileFault::RotateDated => (Everything, "dates rise: a chain, oldest first"),
        FileFault::RotateCompressed | FileFault::RotateDelayed => {
            (Everything, "a compressed copy whose bytes match is the same member")
        }
        FileFault::RotateEmpty => (Everything, "an empty live file is no successor yet, an empty member is passed"),
        FileFault::RemoveRead => (Everything, "a member that was read to its end may go"),
        FileFault::FolderAway => (Everything, "verdicts need a listing without errors, else wait"),
        FileFault::DropFiles => (Everything, "files that are complete are read, each a chain of one"),
        FileFault::ReplaceDeclared => (Everything, "a path that is written anew and renamed over is followed"),
        FileFault::CopyTruncate
        | FileFault::RewriteShorter
        | FileFault::RewriteEqual
        | FileFault::RewriteLonger
        | FileFault::RewriteTail => (Stop, "truncation and rewriting in place stop"),
        FileFault::RewriteRead | FileFault::RewritePackedRead => (Stop, "finished members are compared, too"),
        FileFault::ReplaceByRename | FileFault::RemoveAndRecreate => {
            (Stop, "a current member that lost its name without a rotation's suffix appearing has no successor")
        }
        FileFault::RemoveUnread => (Stop, "a number missing between current and live is a vanished member"),
        FileFault::RemoveCurrent => match case.moment {
            FaultMoment::Down | FaultMoment::TakeOver => (Stop, "a vanished unread file stops"),
            FaultMoment::Idle | FaultMoment::Traffic | FaultMoment::Paused | FaultMoment::TargetAway => {
                (Either, "what is still open can be read to its end; else a vanished unread file stops")
            }
        },
        FileFault::MixedSuffixes => match case.moment {
            FaultMoment::TargetAway => {
                (Either, "who went from file to file as they were rotated knows their order; else mixed suffixes stop")
            }
            FaultMoment::Down
            | FaultMoment::Paused
            | FaultMoment::Idle
            | FaultMoment::Traffic
            | FaultMoment::TakeOver => (Stop, "mixed suffixes stop"),
        },
        FileFault::FallingDates => match case.moment {
            FaultMoment::Down | FaultMoment::Paused => (Stop, "modification times that contradict the names stop"),
            FaultMoment::Idle | FaultMoment::Traffic | FaultMoment::TargetAway | FaultMoment::TakeOver => (
                Either,
                "who went from file to file as they were rotated knows their order; else times that contradict the names stop",
            ),
        },
        FileFault::LateGrowth if case.layout.is_dropped() => {
            (Everything, "what comes to an archive that is the last of its lane is read")
        }
        FileFault::LateGrowth | FileFault::LateGrowthPacked => (Stop, "growth of a predecessor after its end stops"),
        FileFault::OlderAppears => (Stop, "an older member that was not there at the first start stops"),
        FileFault::HardLink => (Stop, "one identity under two stems stops"),
        FileFault::FolderMoved | FileFault::PathEdited | FileFault::LayoutChanged => {
            (Stop, "a path that changed while the same file has progress elsewhere stops and names both")
        }
        FileFault::OwnArchive if case.layout.finds_archives() => (
            Either,
            "an archive that is a lane itself has nothing to read if all of it was read; else nobody can say what follows",
        ),
        FileFault::OwnArchive => (Everything, "the archive of its own name is what the file became, and is read on"),
        FileFault::RestoredCopy => {
            (StopUntilAccepted, "the same content under another inode stops, and is a person's to accept")
        }
        FileFault::TwinFiles => (Everything, "files that lie side by side are as many files, whatever they hold"),
        FileFault::GrowingArchive => (Everything, "an archive that is not whole yet is waited for while it grows"),
    }
}
