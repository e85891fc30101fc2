//! Choices with names for the command line and for figures.

/// Implements `Display` and `FromStr` by the `name` of each choice of `ALL`.
macro_rules! by_name {
    ($($choice:ty),+) => {$(
        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let named = Self::ALL.into_iter().find(|choice| choice.name() == text);
                named.ok_or_else(|| format!("there are {}", Self::ALL.map(Self::name).join(", ")))
            }
        }
    )+};
}

pub(crate) use by_name;
