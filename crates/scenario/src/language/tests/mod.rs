//! Tests that go through the declarations of the whole language.

mod declared_names;
mod random;
