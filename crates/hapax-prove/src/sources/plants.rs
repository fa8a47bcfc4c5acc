//! Planted bugs of file sources, each with the case that must catch it.

use super::case::{FaultMoment, FileFault, SourceCase, SourceLayout, WorkerArrangement};
use crate::setting::Setting;

const fn case(fault: FileFault, moment: FaultMoment, layout: SourceLayout) -> SourceCase {
    SourceCase { fault, moment, layout, workers: WorkerArrangement::One, setting: Setting::strictest() }
}

/// Each bug and a case that catches it.
pub static PLANTS: [(&str, SourceCase); 4] = [
    ("incarnation-learned-anew", case(FileFault::RewriteLonger, FaultMoment::Down, SourceLayout::SinglePath)),
    ("incarnation-learned-anew", case(FileFault::RewriteTail, FaultMoment::Down, SourceLayout::PatternOfNames)),
    ("source-compared-only-when-idle", case(FileFault::RewriteLonger, FaultMoment::Traffic, SourceLayout::SinglePath)),
    (
        "source-compared-only-when-idle",
        case(FileFault::CopyTruncate, FaultMoment::Traffic, SourceLayout::PatternWithSuffixes),
    ),
];
