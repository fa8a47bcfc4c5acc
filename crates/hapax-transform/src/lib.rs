//! The transform of a workflow: a VRL program, compiled once, from a white list of functions.
#![deny(missing_docs)]
