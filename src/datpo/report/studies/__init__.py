"""Tables over trainings, as config/studies/ describes them."""
