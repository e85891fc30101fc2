//! The completeness of the settings in the book's chapter on configuration.

use chronorb_orb::{ConfigError, OrbConfig};

const CHAPTER: &str = include_str!("../../../../docs/src/configuration.md");
const ENVIRONMENT_PREFIX: &str = "CHRONORB_ORB_";
const CONFIG_FILE: &str = "config_file";

struct Setting {
    key: &'static str,
    options: &'static [&'static str],
    is_here: bool,
}

impl Setting {
    fn all() -> Vec<Self> {
        let all = OrbConfig::settings().map(|(key, options, missing)| Self {
            key,
            options,
            is_here: missing.is_none(),
        });
        all.collect()
    }

    fn environment(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.key.to_ascii_uppercase())
    }

    /// Returns the configuration with this value of the setting.
    fn with(&self, value: &str) -> Option<OrbConfig> {
        self.read(value).ok()
    }

    fn read(&self, value: &str) -> Result<OrbConfig, ConfigError> {
        OrbConfig::read(&mut vec![self.options[0].to_owned(), value.to_owned()])
    }

    /// Whether the program is built without the feature that this value needs.
    fn is_left_out(&self, value: &str) -> bool {
        let refused = self.read(value).err();
        refused.is_some_and(|error| error.to_string().contains("built without the feature"))
    }
}

/// Returns the cells of all rows of the table with this head.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let (_, rest) = CHAPTER.split_once(head).expect("there is the table");
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the row of each setting.
fn rows() -> Vec<(Setting, Vec<&'static str>)> {
    let rows = table("| Option | Environment | TOML key | Default | Range |");
    rows.into_iter()
        .map(|row| {
            let options: Vec<_> = quoted(row[0]).collect();
            let mut settings = Setting::all().into_iter();
            let setting = settings.find(|setting| setting.options == options);
            (setting.unwrap_or_else(|| panic!("no {options:?}")), row)
        })
        .collect()
}

/// Returns the value in a cell; `None` if the cell describes it only.
fn value(cell: &str) -> Option<&str> {
    let number = cell.split([' ', ',']).next().expect("there is a part");
    let is_number = number.bytes().all(|octet| octet.is_ascii_digit());
    quoted(cell).next().or_else(|| is_number.then_some(number))
}

#[test]
fn every_setting_has_its_row_with_all_its_names() {
    let rows = rows();
    for setting in Setting::all() {
        let key = setting.key;
        let found = rows.iter().filter(|(other, _)| other.key == key);
        assert_eq!(found.count(), 1, "rows of {key}");
    }
    for (setting, row) in rows {
        assert_eq!(row[1], format!("`{}`", setting.environment()));
        match setting.key {
            CONFIG_FILE => assert_eq!(row[2], "–", "a file names no other"),
            key => assert_eq!(row[2], format!("`{key}`")),
        }
    }
}

#[test]
fn every_setting_is_explained() {
    let rows = table("The meaning of each:\n\n| Setting | |");
    let explained: Vec<_> = rows.iter().flat_map(|row| quoted(row[0])).collect();
    let settings = Setting::all();
    for setting in settings.iter().filter(|setting| setting.key != CONFIG_FILE) {
        assert!(explained.contains(&setting.key), "{}", setting.key);
    }
    for key in explained {
        assert!(settings.iter().any(|setting| setting.key == key), "{key}");
    }
}

#[test]
fn defaults_are_what_the_chapter_says() {
    let read = OrbConfig::read(&mut Vec::new()).expect("a correct environment");
    let default = format!("{read:?}");
    for (setting, row) in rows() {
        let Some(value) = value(row[3]).filter(|_| setting.is_here) else {
            continue;
        };
        // The environment may set another value.
        if std::env::var_os(setting.environment()).is_none() {
            let config = setting.with(value).expect(value);
            assert_eq!(format!("{config:?}"), default, "{}", setting.key);
        }
    }
}

#[test]
fn values_are_taken_within_the_ranges_and_not_beyond() {
    for (setting, row) in rows() {
        if value(row[3]).is_none() || !setting.is_here {
            continue;
        }
        let takes = |value: &str| setting.with(value).is_some();
        for value in quoted(row[4]) {
            let is_answered = takes(value) || setting.is_left_out(value);
            assert!(is_answered, "{}: {value}", setting.key);
        }
        let Some((least, greatest)) = row[4].split_once(" to ") else {
            continue;
        };
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let least = number(least.rsplit(' ').next());
        let greatest = number(greatest.split([' ', ',']).next());
        if let (Some(least), Some(greatest)) = (least, greatest) {
            assert!(takes(&least.to_string()), "{}: {least}", setting.key);
            assert!(takes(&greatest.to_string()), "{}: {greatest}", setting.key);
            assert!(!takes(&(greatest + 1).to_string()), "{}", setting.key);
            let below = least.checked_sub(1).filter(|below| *below > 0);
            assert!(
                !below.is_some_and(|n| takes(&n.to_string())),
                "{}",
                setting.key
            );
        }
    }
}

/// Options that other ORBs have, which pages compare with ours or give to their programs.
const OF_OTHERS: &[&str] = &["other-orbs.md", "tutorial-cpp.md"];

#[test]
fn every_option_that_a_page_names_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let book = std::fs::read_dir(root.join("docs/src")).expect("there is a book");
    let pages = book.map(|entry| entry.expect("it can be listed").path());
    let pages = pages.filter(|path| !OF_OTHERS.iter().any(|name| path.ends_with(name)));
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let known: Vec<_> = Setting::all()
        .into_iter()
        .flat_map(|setting| setting.options.iter().copied())
        .chain(["-ORBHelp"])
        .collect();
    for path in pages.chain([root.join("README.md"), root.join("SECURITY.md")]) {
        let page = std::fs::read_to_string(&path).expect("it is text");
        for rest in page.split("-ORB").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next();
            let option = format!("-ORB{}", name.unwrap_or_default());
            // `-ORB…` stands for all, and a message about a mistake shows one.
            let is_shown = option == "-ORB" || rest.starts_with("ListenEndpoint;");
            let is_known = known
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&option));
            assert!(is_known || is_shown, "{}: {option}", path.display());
        }
    }
}

/// Options of other ORBs, which are recognised and refused, those of examples of refusals, and the
/// one that only commands have.
const FOREIGN: [&str; 7] = [
    "-ORBHelp",
    "-ORBColour",
    "-ORBSSL",
    "-ORBendPoint",
    "-ORBhelp",
    "-ORBmaxGIOPConnectionPerServer",
    "-ORBserverTransportRule",
];

#[test]
fn every_option_that_a_text_of_the_code_names_exists() {
    let settings = Setting::all();
    let known: Vec<_> = settings.iter().flat_map(|it| it.options.iter()).collect();
    let mut folders = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/..").into()];
    let mut number = 0;
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir::<std::path::PathBuf>(folder).expect("it is a folder");
        for path in entries.map(|entry| entry.expect("it reads").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("it is text");
                for option in options_in(&text) {
                    let exists = known.iter().any(|known| ***known == *option);
                    let file = path.display();
                    assert!(exists || FOREIGN.contains(&option), "{file}: {option}");
                    number += 1;
                }
            }
        }
    }
    assert!(number > 100, "{number} options are named");
}

/// Returns the words of a text that look like an option of an ORB.
fn options_in(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("-ORB").map(|(start, _)| start);
    let options = starts.map(|start| {
        let rest = &text[start..];
        let end = rest[1..].find(|c: char| !c.is_ascii_alphabetic());
        end.map_or(rest, |end| &rest[..end + 1])
    });
    options.filter(|option| option.len() > "-ORB".len())
}
