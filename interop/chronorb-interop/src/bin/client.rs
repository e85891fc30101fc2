//! `chronorb-interop-client --ior FILE|URL [--only GROUP]… [--skip GROUP]… [--no-wide] [--utf8]
//! [--shutdown] [--list] [-ORB…]`
//!
//! Checks any ORB's server of `Interop::Hub`, a line for each check, and ends "N passed, M failed".

use std::fs;
use std::process::ExitCode;

use chronorb::prelude::*;
use chronorb_interop::idl::Hub;
use chronorb_interop::{Failure, GROUPS, Report, Subject};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(failure) => {
            eprintln!("chronorb-interop-client: {failure}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Failure> {
    let mut args = std::env::args().collect();
    let orb = Orb::init(&mut args)?;
    let arguments = Arguments::read(&args[1..])?;
    if arguments.list {
        for group in GROUPS {
            println!("{}", group.name());
        }
        return Ok(true);
    }
    let object = orb.string_to_object(&reference_text(&arguments.ior)?)?;
    let hub = Hub::narrow(&object)?.ok_or("the reference is not one of an Interop::Hub")?;
    let subject = Subject::new(orb.clone(), hub)?;
    let mut report = Report::default();
    for group in GROUPS.iter().filter(|group| arguments.wants(group.name())) {
        group.run(&subject, &mut report);
    }
    if arguments.shutdown {
        subject.hub().shutdown()?;
    }
    let passed = report.finish();
    orb.shutdown(true)?;
    Ok(passed)
}

#[derive(Default)]
struct Arguments {
    ior: String,
    only: Vec<String>,
    skip: Vec<String>,
    shutdown: bool,
    list: bool,
}

impl Arguments {
    fn read(args: &[String]) -> Result<Self, Failure> {
        let mut this = Self::default();
        let mut utf8 = false;
        let mut args = args.iter();
        while let Some(option) = args.next() {
            let mut value = || args.next().cloned().ok_or(USAGE);
            match option.as_str() {
                "--ior" => this.ior = value()?,
                "--only" => this.only.push(value()?),
                "--skip" => this.skip.push(value()?),
                "--no-wide" => this.skip.push("wide".to_owned()),
                "--utf8" => utf8 = true,
                "--shutdown" => this.shutdown = true,
                "--list" => this.list = true,
                other => return Err(format!("unknown option {other}\n{USAGE}").into()),
            }
        }
        // Each code set has its own group.
        this.skip
            .push(if utf8 { "latin1-chars" } else { "multibyte" }.to_owned());
        for name in this.only.iter().chain(&this.skip) {
            if !GROUPS.iter().any(|group| group.name() == name) {
                return Err(format!("no such group: {name}").into());
            }
        }
        if this.ior.is_empty() && !this.list {
            return Err(USAGE.into());
        }
        Ok(this)
    }

    fn wants(&self, group: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|name| name == group);
        (self.only.is_empty() || has(&self.only)) && !has(&self.skip)
    }
}

/// Returns the reference itself, or the first line of the file.
fn reference_text(file_or_url: &str) -> Result<String, Failure> {
    let schemes = ["IOR:", "corbaloc:", "corbaname:", "file:"];
    if schemes.iter().any(|scheme| file_or_url.starts_with(scheme)) {
        return Ok(file_or_url.to_owned());
    }
    let text = fs::read_to_string(file_or_url).map_err(|e| format!("{file_or_url}: {e}"))?;
    Ok(text.trim().to_owned())
}

const USAGE: &str = "usage: chronorb-interop-client --ior FILE|URL [--only GROUP]… \
    [--skip GROUP]… [--no-wide] [--utf8] [--shutdown] [--list] [-ORB…]";
