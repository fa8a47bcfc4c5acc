//! Planted bugs of file sources, each with the cases that must catch it.

use super::case::{FaultMoment, FileFault, RecordFormat, SourceCase, SourceLayout, WorkerArrangement};
use crate::setting::Setting;

const fn case(fault: FileFault, moment: FaultMoment, layout: SourceLayout, workers: WorkerArrangement) -> SourceCase {
    SourceCase { fault, moment, layout, workers, format: RecordFormat::Jsonl, setting: Setting::strictest() }
}

/// A file that was rewritten while nobody ran: only what a start compares with progress can tell.
const fn rewritten(fault: FileFault, layout: SourceLayout) -> (&'static str, SourceCase) {
    ("incarnation-learned-anew", case(fault, FaultMoment::Down, layout, WorkerArrangement::One))
}

/// A file that was read before is changed while records flow into its successor: only the regular comparison looks there.
/// A worker that was started since does not hold the old file open.
const fn changed_behind(
    fault: FileFault,
    layout: SourceLayout,
    workers: WorkerArrangement,
) -> (&'static str, SourceCase) {
    ("source-compared-only-when-idle", case(fault, FaultMoment::Traffic, layout, workers))
}

/// Each bug and a case that catches it.
pub static PLANTS: [(&str, SourceCase); 4] = [
    rewritten(FileFault::RewriteLonger, SourceLayout::SinglePath),
    rewritten(FileFault::RewriteTail, SourceLayout::PatternOfNames),
    changed_behind(FileFault::RewriteRead, SourceLayout::PatternWithSuffixes, WorkerArrangement::One),
    changed_behind(FileFault::LateGrowth, SourceLayout::SinglePath, WorkerArrangement::Restarted),
];
