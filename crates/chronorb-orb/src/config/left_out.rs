//! Settings of features that the program is built without are known, and refused by the feature's
//! name, wherever they are given. Without features this is a test of all of them.

use super::*;

/// Returns the answer to a value of the setting on the command line.
fn on_the_command_line(setting: &Setting, option: &str, value: &str) -> Result<(), ConfigError> {
    let mut line = vec!["program".to_owned(), option.to_owned(), value.to_owned()];
    let outcome = OrbConfig::read(&mut line).map(drop);
    let left = if outcome.is_ok() { 1 } else { 3 };
    assert_eq!(line.len(), left, "{}", setting.key);
    outcome
}

fn in_the_environment(setting: &Setting, value: &str) -> Result<(), ConfigError> {
    let name = format!("{ENVIRONMENT_PREFIX}{}", setting.key.to_ascii_uppercase());
    let given = environment([(name.into(), value.into())].into_iter())?;
    OrbConfig::default().apply("environment", &given)
}

fn in_a_file(setting: &Setting, value: &str) -> Result<(), ConfigError> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), format!("{} = {value:?}\n", setting.key)).expect("written");
    OrbConfig::default().apply("file", &file::read(file.path())?)
}

fn assert_refused(outcome: Result<(), ConfigError>, missing: &table::MissingFeature, what: &str) {
    let told = outcome.expect_err(what).to_string();
    let reason = format!("built without the feature {} of the crate", missing.feature);
    assert!(told.contains(&reason), "{what}: {told}");
}

#[test]
fn settings_of_features_that_are_left_out_are_refused_by_the_features_name() {
    for setting in SETTINGS {
        let Some(missing) = setting.missing else {
            continue;
        };
        for option in setting.options {
            let outcome = on_the_command_line(setting, option, "65536");
            assert_refused(outcome, missing, option);
        }
        if setting.key != CONFIG_FILE {
            assert_refused(in_the_environment(setting, "65536"), missing, setting.key);
            if cfg!(feature = "config-file") {
                assert_refused(in_a_file(setting, "65536"), missing, setting.key);
            }
        }
    }
}

#[test]
fn values_that_ask_for_nothing_are_taken_without_the_feature() {
    let of_features = SETTINGS.iter().filter_map(|setting| {
        let missing = setting.missing?;
        Some((setting, missing.without))
    });
    for (setting, values) in of_features {
        for value in values {
            let option = setting.option();
            assert_eq!(
                on_the_command_line(setting, option, value),
                Ok(()),
                "{option}"
            );
            assert_eq!(in_the_environment(setting, value), Ok(()), "{option}");
        }
    }
}

/// Fields whose types need no feature exist without it, and only their defaults are taken.
#[test]
fn fields_of_features_that_are_left_out_are_refused_by_the_features_name() {
    type Change = fn(&mut OrbConfig);
    let changes: [(&str, Change); 5] = [
        ("profile", |config| config.profile = SecurityProfile::Secure),
        ("object_key_secret", |config| {
            config.object_key_secret = Some(crate::key_codes::ObjectKeySecret::new([7; 16]));
        }),
        ("bidirectional", |config| {
            config.bidirectional = BidirectionalConnections::Offer;
        }),
        ("monitor", |config| config.monitor = MonitorSocket::On),
        ("trace_size", |config| config.trace.size = 65536),
    ];
    let checked = |config: OrbConfig| config.checked().map(drop);
    assert_eq!(checked(OrbConfig::default()), Ok(()));
    for (key, change) in changes {
        let setting = SETTINGS.iter().find(|setting| setting.key == key);
        let mut config = OrbConfig::default();
        change(&mut config);
        match setting.expect(key).missing {
            Some(missing) => assert_refused(checked(config), missing, key),
            None => assert_eq!(checked(config), Ok(()), "{key}"),
        }
    }
}

/// The table has the feature of each setting: a program without features would have no such
/// settings.
#[test]
fn each_feature_with_settings_is_in_the_table() {
    let missing = |feature| {
        let mut all = SETTINGS.iter().filter_map(|setting| setting.missing);
        all.any(|missing| missing.feature == feature)
    };
    macro_rules! features {
        ($($name:literal)+) => { [$(($name, cfg!(feature = $name))),+] };
    }
    for (feature, is_on) in features![
        "config-file" "miop" "ssliop" "access" "riop" "bidir" "monitor" "tracing"
        "faults" "trace" "schedule"
    ] {
        assert_eq!(missing(feature), !is_on, "{feature}");
    }
}

#[test]
fn protocols_that_are_left_out_are_refused_by_the_features_name() {
    for feature in crate::protocol::LEFT_OUT {
        let endpoint = format!("{feature}://127.0.0.1:2809");
        for (option, value) in [
            ("-ORBProtocols", *feature),
            ("-ORBListenEndpoints", &endpoint),
        ] {
            let mut line = vec![option.to_owned(), value.to_owned()];
            let config = OrbConfig::read(&mut line).expect("a correct command line");
            let told = Registry::new(&config).expect_err(feature);
            let told = ConfigError::of_protocols(told).to_string();
            let reason = format!("built without the feature {feature} of the crate");
            assert!(told.contains(&reason), "{option} {value}: {told}");
        }
    }
}

#[cfg(not(feature = "baselines"))]
#[test]
fn values_that_are_left_out_are_refused_by_the_features_name() {
    let mut values = Vec::new();
    for setting in SETTINGS {
        if let Apply::Choice(choices) = setting.apply {
            let left_out = choices.iter().filter(|(_, choose)| choose.is_none());
            values.extend(left_out.map(|(name, _)| (setting, *name)));
        }
        if setting.key == ARCHITECTURE {
            let left_out = architecture::NAMES.iter().filter(|(_, it)| it.is_none());
            values.extend(left_out.map(|(name, _)| (setting, *name)));
        }
    }
    let keys: Vec<_> = values
        .iter()
        .map(|(setting, name)| (setting.key, *name))
        .collect();
    let expected = [
        (ARCHITECTURE, "worker-pool"),
        (ARCHITECTURE, "filter-chain"),
        ("threadpool_strategy", "worker-pool"),
        ("threadpool_strategy", "filter-chain"),
        ("client_connection", "active"),
    ];
    assert_eq!(keys, expected);
    for (setting, name) in values {
        let missing = table::MissingFeature {
            feature: table::BASELINES,
            without: &[],
        };
        let outcome = on_the_command_line(setting, setting.option(), name);
        assert_refused(outcome, &missing, name);
    }
}

#[cfg(all(feature = "schedule", not(feature = "riop")))]
#[test]
fn a_schedule_with_an_interface_is_refused_by_the_features_name() {
    use crate::orb::InitError;
    use crate::schedule::StartError;

    let text = r#"
        [[link]]
        name = "lan"
        rate = "100 Mbit"
        interface = { here = "eth7" }
        [[node]]
        name = "here"
        [[operation]]
        name = "Map::draw"
        node = "here"
        wcet = "1 ms"
        period = "20 Hz"
    "#;
    let schedule =
        chronorb_schedule::Schedule::parse("map.toml", text, &mut |_| Err(String::new()));
    let schedule = schedule.expect("a schedule");
    let lock = schedule
        .assign()
        .expect("it is assigned")
        .lock_file(&schedule);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("map.rt.lock");
    std::fs::write(&file, lock.to_string()).expect("written");
    let mut line = vec!["program".to_owned()];
    line.extend(["-ORBSchedule".to_owned(), file.display().to_string()]);
    let refused = crate::Orb::init(&mut line).expect_err("it needs the feature");
    let told = refused.to_string();
    for part in [
        "interface eth7 (link lan) of",
        "built without the feature riop of the crate",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let refused = match refused {
        InitError::Schedule(refused) => refused,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused, StartError::LeftOut { .. }), "{refused:?}");
}
