//! Values as people write them: times, rates, ports and caps.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// `"10 ms"`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TimeValue(pub(super) Duration);

/// `"100 Mbit"`, in bits per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RateValue(pub(super) u64);

/// `2809`, `"3000-3999"`, or an array of these.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct PortsValue(pub(super) Vec<RangeInclusive<u16>>);

/// `"40 %"`, as a share of 1, or a number of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CapValue {
    Share(f64),
    Packets(u32),
}

impl<'de> Deserialize<'de> for TimeValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Time;
        impl Visitor<'_> for Time {
            type Value = TimeValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_TIME)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TimeValue, E> {
                let time = time(text).ok_or_else(|| wrong(text, A_TIME))?;
                Ok(TimeValue(time))
            }
        }
        deserializer.deserialize_any(Time)
    }
}

impl<'de> Deserialize<'de> for RateValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rate;
        impl Visitor<'_> for Rate {
            type Value = RateValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_RATE)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<RateValue, E> {
                let rate = rate(text).ok_or_else(|| wrong(text, A_RATE))?;
                Ok(RateValue(rate))
            }
        }
        deserializer.deserialize_any(Rate)
    }
}

impl<'de> Deserialize<'de> for PortsValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ports;
        impl<'de> Visitor<'de> for Ports {
            type Value = PortsValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PORTS)
            }

            fn visit_i64<E: Error>(self, port: i64) -> Result<PortsValue, E> {
                let port = u16::try_from(port).ok().filter(|port| *port > 0);
                let port =
                    port.ok_or_else(|| E::custom(format!("a port is of 1 to 65535: {PORTS}")))?;
                Ok(PortsValue(vec![port..=port]))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PortsValue, E> {
                let ports = ports(text).ok_or_else(|| wrong(text, PORTS))?;
                Ok(PortsValue(vec![ports]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<PortsValue, A::Error> {
                let mut all = Vec::new();
                while let Some(PortsValue(ports)) = values.next_element()? {
                    all.extend(ports);
                }
                Ok(PortsValue(all))
            }
        }
        deserializer.deserialize_any(Ports)
    }
}

impl<'de> Deserialize<'de> for CapValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cap;
        impl Visitor<'_> for Cap {
            type Value = CapValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_CAP)
            }

            fn visit_i64<E: Error>(self, packets: i64) -> Result<CapValue, E> {
                let packets = u32::try_from(packets).ok().filter(|packets| *packets > 0);
                let packets = packets.ok_or_else(|| E::custom(format!("it is no cap: {A_CAP}")))?;
                Ok(CapValue::Packets(packets))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CapValue, E> {
                let share = share(text).ok_or_else(|| wrong(text, A_CAP))?;
                Ok(CapValue::Share(share))
            }
        }
        deserializer.deserialize_any(Cap)
    }
}

fn time(text: &str) -> Option<Duration> {
    let (count, unit) = number_and_unit(text)?;
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    let count: u64 = count.parse().ok()?;
    count.checked_mul(nanos).map(Duration::from_nanos)
}

fn rate(text: &str) -> Option<u64> {
    let (count, unit) = number_and_unit(text)?;
    let bits = match unit.strip_suffix("/s").unwrap_or(unit) {
        "bit" => 1.0,
        "kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        _ => return None,
    };
    let rate = bits * count.parse::<f64>().ok()?;
    (1.0..=1e15).contains(&rate).then_some(rate as u64)
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.trim().parse().ok().filter(|port| *port > 0);
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(first..=last)
}

fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.trim_end().parse().ok()?;
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

/// `10` and `ms` of `10 ms` or `10ms`.
fn number_and_unit(text: &str) -> Option<(&str, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(at);
    Some((number, unit.trim_start()))
}

fn wrong<E: Error>(text: &str, right: &str) -> E {
    E::custom(format!("{text:?} is not {right}"))
}

const A_TIME: &str = "a time such as \"50 us\", \"2 ms\" or \"1 s\"";
const A_RATE: &str = "a rate such as \"100 Mbit\" or \"2.5 Gbit\", of at least a bit per second";
const PORTS: &str = "a port, a range of ports such as \"3000-3999\", or an array of these";
const A_CAP: &str =
    "a share of the interface such as \"40 %\", of at most 100 %, or a number of packets from 1 on";
