//! A laboratory for transport protocols: the library
