//! Tests of `url`.
