//! `fullpipe completions` and `fullpipe man`: completion scripts and manual pages from the declaration of the command
//! line.

use crate::arguments::Arguments;
use crate::exit::Failure;
use crate::output::print_line;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use fullpipe::scenario::schema::nearest_name;
use std::io;
use std::path::Path;

/// Runs `fullpipe completions`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fullpipe", &mut script);
    print_line!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

/// Runs `fullpipe man`.
pub(crate) fn manual(names: &[String], out: Option<&Path>) -> Result<(), Failure> {
    if let Some(folder) = out {
        return write_all(folder);
    }
    let page = page(find(names)?).map_err(Failure::machine)?;
    print_line!("{}", String::from_utf8_lossy(&page).trim_end());
    Ok(())
}

/// Finds a command by its words, such as `study run`, and names it as its manual page: `fullpipe-study-run`.
pub(crate) fn find(names: &[String]) -> Result<Command, Failure> {
    let mut command = all();
    for name in names {
        let known: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        let Some(found) = command.find_subcommand(name).cloned() else {
            let hint = nearest_name(name, known.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let parent = command.get_bin_name().unwrap_or("fullpipe");
            return Err(Failure::usage(match known.is_empty() {
                true => format!("`{parent}` has no commands, but `{name}` was given"),
                false => format!("`{parent}` has no command `{name}`{hint} (there are: {})", known.join(", ")),
            }));
        };
        command = found;
    }
    Ok(command)
}

/// Returns the command line with the full names of all commands.
fn all() -> Command {
    let mut command = Arguments::command();
    command.build();
    command
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_bin_name().unwrap_or("fullpipe").replace(' ', "-");
    let (mut page, version) = (Vec::new(), env!("CARGO_PKG_VERSION"));
    let command = command.version(version).display_name(name);
    Man::new(command).source(format!("fullpipe {version}")).manual("Fullpipe").render(&mut page)?;
    Ok(page)
}

/// Writes `fullpipe.1`, `fullpipe-study-run.1` and so on.
fn write_all(folder: &Path) -> Result<(), Failure> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("--out {} is a file; expected a folder for the pages", folder.display())));
    }
    let failed = |path: &Path, error: io::Error| Failure::machine(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::machine(format!("cannot create the folder {}: {error}", folder.display())))?;
    let mut commands = vec![all()];
    let mut pages = 0;
    while let Some(command) = commands.pop() {
        let shown = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        commands.extend(shown.cloned());
        let name = command.get_bin_name().unwrap_or("fullpipe").replace(' ', "-");
        let path = folder.join(format!("{name}.1"));
        let page = page(command).map_err(|error| failed(&path, error))?;
        std::fs::write(&path, page).map_err(|error| failed(&path, error))?;
        pages += 1;
    }
    eprintln!(
        "{pages} manual pages written to {}; `man -l {}` shows the first",
        folder.display(),
        folder.join("fullpipe.1").display()
    );
    Ok(())
}
