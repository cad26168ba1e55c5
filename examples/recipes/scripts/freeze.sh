# On Friday:
holdfast hold deploy/prod --for 60h --reason "no releases before Monday"

# A release during the freeze ends with status 75, and prints its end and its reason:
holdfast run -n deploy/prod -- ./deploy.sh

# One that cannot wait: end your own freeze, or take the lock away from an absent colleague.
holdfast release deploy/prod || holdfast break deploy/prod --reason "hotfix 1234"
