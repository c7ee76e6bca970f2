//! Prints the reference of study files: what stands at the end of `docs/studies.md`.

fn main() {
    print!("{}", fullpipe_study::language::reference());
}
