//! Calendar days as integers, so that periods can be measured without a date crate.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A day of the Gregorian calendar, counted from 1970-01-01; formatted as `2025-09-27`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ts_rs::TS)]
#[ts(type = "string")]
pub struct CalendarDay(i32);

/// Days in 400 years, the cycle of the calendar.
const DAYS_PER_ERA: i32 = 146_097;
/// Days from 0000-03-01, the start of the first year in this arithmetic, to 1970-01-01.
const DAYS_TO_1970: i32 = 719_468;
const SECONDS_PER_DAY: i64 = 86_400;

impl CalendarDay {
    /// 0000-01-01, the earliest day that can be formatted.
    pub const MIN: Self = Self(-719_528);
    /// 9999-12-31, the latest day that can be formatted; as an as-of date it means "everything".
    pub const MAX: Self = Self(2_932_896);

    /// Parses `2025-09-27`; `None` for a day that does not exist.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: &[u8; 10] = text.as_bytes().try_into().ok()?;
        if bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0, |number, digit| {
                digit.is_ascii_digit().then(|| number * 10 + i32::from(digit - b'0'))
            })
        };
        Self::new(number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..])?)
    }

    /// Builds a day from a year (0 to 9999), month and day of the month; `None` if it does not
    /// exist.
    pub fn new(year: i32, month: i32, day: i32) -> Option<Self> {
        if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let counted = Self::from_civil(year, month, day);
        // The 31st of a shorter month would become a day of the next month.
        (counted.civil() == (year, month, day)).then_some(counted)
    }

    /// The UTC day of a Unix time in seconds, clamped to the supported years.
    pub fn from_unix_seconds(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let held = days.clamp(i64::from(Self::MIN.0), i64::from(Self::MAX.0));
        i32::try_from(held).map_or(Self::MAX, Self)
    }

    /// Days from `earlier` to this day; negative if this day is before it.
    pub const fn days_since(self, earlier: Self) -> i32 {
        self.0 - earlier.0
    }

    /// The day `days` later, or earlier if negative, clamped to the supported years.
    pub fn plus_days(self, days: i32) -> Self {
        Self(self.0.saturating_add(days).clamp(Self::MIN.0, Self::MAX.0))
    }

    /// The calendar year.
    pub const fn year(self) -> i32 {
        self.civil().0
    }

    /// The day number of a civil date. Years start in March, so the leap day comes last.
    const fn from_civil(year: i32, month: i32, day: i32) -> Self {
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year - era * 400;
        let month_from_march = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Self(era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970)
    }

    /// Year, month and day of the month.
    const fn civil(self) -> (i32, i32, i32) {
        let days = self.0 + DAYS_TO_1970;
        let era = days.div_euclid(DAYS_PER_ERA);
        let day_of_era = days - era * DAYS_PER_ERA;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
        (year, month, day)
    }
}

impl fmt::Display for CalendarDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Debug for CalendarDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for CalendarDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CalendarDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected a day like 2025-09-27"))
    }
}

#[cfg(test)]
#[path = "day_tests.rs"]
mod tests;
