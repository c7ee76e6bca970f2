//! Tests over all declarations of the language.

mod declared_names;
mod random;
