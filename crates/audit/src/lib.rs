//! An independent check of every run from what observers saw
