"""Operations on Arrow arrays that Arrow's own functions lack; runs on executors."""
